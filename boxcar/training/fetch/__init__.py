"""Bring a training's data to where it trains: every split of every task, checked, or a reason.

    python -m boxcar.training.fetch data.json --check      # on the laptop: is it all there?
    python -m boxcar.training.fetch data.json              # on the box

    from boxcar.training.fetch import fetch
    files = fetch("data.json")                             # in a train.py, on every rank
    path = files["burgers1d", "train"]

data.json:

    {"to": "$BOXCAR_DATA_DIR/pde",
     "tasks": {"burgers1d": {}, "darcy2d": {"splits": {"train": "required"}}},
     "splits": {"train": "required", "val": "optional", "test": "optional"},
     "patterns": ["s3://bucket/full/{task}/{task}_{split}.h5", "https://host/{task}_{split}.h5"],
     "sha256": {"burgers1d_train.h5": "9f86d0..."}}

A task may have its own "splits" and "patterns". The file is called {task}_{split} with the URL's
suffix, and lies in `to`. Any URL that fsspec knows will do; credentials come from the environment,
as its file system reads them, and never from this file.
"""

from boxcar.training.fetch.lookup import MissingError, Outcome
from boxcar.training.fetch.staging import Files, check, fetch

__all__ = ["Files", "MissingError", "Outcome", "check", "fetch"]
