"""The .boxcarignore of a project: what git ignores, but for data that the script may need."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

# What trainings leave beside the code.
_USUAL = ("wandb/", "runs/", "outputs/", "multirun/", "lightning_logs/", "mlruns/", "logs/")
_DATA = ("data", "dataset", "datasets", "inputs")
_MOST_BYTES, _MOST_FILES = 50_000_000, 10_000
_HEAD = (
    "# What is not shipped to the boxes, in git's syntax. Where this file is, .gitignore does not\n"
    "# count."
)


def text(root: Path, of_git: Sequence[str]) -> str:
    """`of_git` are the lines of .gitignore. A small folder of data is shipped whole, whatever other
    lines would keep, such as *.jpg.
    """
    names = [re.sub(r"(/\*+)?/?$", "", line.strip().lstrip("/")) for line in of_git]
    small = [name for name in _DATA if name in names and _is_small(root / name)]
    kept = "# shipped, as your script may need it: "
    lines = [kept * (name in small) + line for name, line in zip(names, of_git, strict=True)]
    lines += [each for each in _USUAL if each[:-1] not in names and (root / each).is_dir()]
    return "\n".join([_HEAD, *lines, *(f"!{name}/**" for name in small)]) + "\n"


def _is_small(folder: Path) -> bool:
    files = list(itertools.islice((path for path in folder.rglob("*")), _MOST_FILES))
    size_bytes = sum(path.lstat().st_size for path in files if path.is_file())
    return len(files) < _MOST_FILES and 0 < size_bytes <= _MOST_BYTES
