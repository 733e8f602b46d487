"""The environment of a cell's launcher. Pure."""

from __future__ import annotations

import os

from onbox.machine import credentials_path

# Not typing's: see process.py.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PYTHON_PATH = "PYTHONPATH"


def of_launcher(
    box: Mapping[str, str],
    own: Mapping[str, str],
    secrets: Mapping[str, str],
    python_path: Sequence[str],
) -> dict[str, str]:
    """The box's, with the cell's own over it and the secrets over that.

    `python_path` comes before what the cell or else the box has; of the credentials' file nobody
    hears.
    """
    merged = {**box, **own, **secrets}
    merged.pop(credentials_path.VARIABLE, None)
    parts = (*python_path, merged.get(_PYTHON_PATH))
    return {
        **merged,
        _PYTHON_PATH: os.pathsep.join(filter(None, parts)),
        "PYTHONUNBUFFERED": "1",
    }
