"""The .boxcarignore of a project: what git ignores, but for data that the script may need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from boxcar.laptop.common.units import size

# What trainings leave beside the code.
USUAL = ("wandb/", "runs/", "outputs/", "multirun/", "lightning_logs/", "mlruns/", "logs/")
_DATA = ("data/", "dataset/", "datasets/", "inputs/")
MOST_BYTES = 50_000_000
_HEAD = (
    "# What is not shipped to the boxes, in git's syntax. Where this file is, .gitignore does not\n"
    "# count."
)


def text(of_git: Sequence[str], data_bytes: Mapping[int, int], *, usual: Sequence[str]) -> str:
    """`of_git` are the lines of .gitignore; `data_bytes`, by their numbers from 1, how much data
    each keeps from being shipped. `usual` are the folders of USUAL that are there.
    """
    lines = [*_lines(of_git, data_bytes), *_more(of_git, usual), *_whole(of_git, data_bytes)]
    return "\n".join([_HEAD, *lines]) + "\n"


def is_data(path: str) -> bool:
    """Whether this path lies in what people call their data."""
    return f"{path.partition('/')[0]}/".lower() in _DATA


def _lines(of_git: Sequence[str], data_bytes: Mapping[int, int]) -> Iterator[str]:
    for number, line in enumerate(of_git, start=1):
        size_bytes = data_bytes.get(number, 0)
        if 0 < size_bytes <= MOST_BYTES:
            yield f"# shipped, as your script may need it ({size(size_bytes)} of data): {line}"
        else:
            yield line


def _whole(of_git: Sequence[str], data_bytes: Mapping[int, int]) -> Iterator[str]:
    """Of a folder that is shipped all, also what another line would keep, such as *.jpg."""
    for number, line in enumerate(of_git, start=1):
        if 0 < data_bytes.get(number, 0) <= MOST_BYTES and re.fullmatch(r"[\w./-]+", line.strip()):
            yield f"!{line.strip().strip('/')}/**"


def _more(of_git: Sequence[str], usual: Sequence[str]) -> Iterator[str]:
    known = {line.strip().strip("/") for line in of_git}
    yield from (name for name in usual if name.strip("/") not in known)
