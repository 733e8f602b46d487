"""`python -m bench [NAME ...]`: run all measurements, or the named ones."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench import (
    agent,
    boxes,
    cluster_scale,
    copies,
    gap,
    journals,
    latent_cache,
    mirror,
    training,
    training_saves,
)
from boxcar.laptop.common import show

BENCHES = {
    "agent": agent.measure,
    "boxes": boxes.measure,
    "cluster_scale": cluster_scale.measure,
    "copies": copies.measure,
    "gap": gap.measure,
    "journals": journals.measure,
    "latent_cache": latent_cache.measure,
    "mirror": mirror.measure,
    "training": training.measure,
    "training_saves": training_saves.measure,
}


def main() -> int:
    names = sys.argv[1:] or list(BENCHES)
    for name in names:
        if name not in BENCHES:
            print(f"there is no bench {name!r}; there are {', '.join(BENCHES)}", file=sys.stderr)
            return 2
    for name in names:
        show.say(f"measuring {name} …")
        with tempfile.TemporaryDirectory(prefix="boxcar-bench-", dir=Path.cwd()) as folder:
            rows = BENCHES[name](Path(folder))
        show.table(name, ("what", "value", "beside", "ratio"), [row.fields for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
