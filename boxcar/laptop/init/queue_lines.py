"""The first queue of a project: a few lines that run, and others to uncomment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from boxcar.laptop.init import flags
from boxcar.laptop.init.script import Script
from boxcar.shared.cell import cell_name
from boxcar.shared.files import queue_line

_ACTIVE = 2
_MOST_SHOWN = 20


def typed(path: str) -> str:
    """A path as one word of a command or a queue line; one that reads as itself stays as it is."""
    try:
        is_one_word = shlex.split(path, comments=True) == [path]
    except ValueError:
        is_one_word = False
    return path if is_one_word else shlex.quote(path)


def fits(config: str) -> bool:
    """Whether a queue line can name it: one with a line feed in its name would be two lines."""
    try:
        found = queue_line.parse_queue(f"{_of_config(config, '')}\n".encode())
    except UnicodeEncodeError:
        return False
    return [line.cfg for line in found.cells] == [config]


def queue_lines_of(script: Script, epochs: int | None, configs: Sequence[str]) -> tuple[str, ...]:
    """Queue lines; those behind a `#` are configs that were found too. `configs` are none where
    the command takes no config, and fit.
    """
    last = f" {epochs}" if epochs else ""
    if configs:
        names = sorted(configs, key=_order)[:_MOST_SHOWN]
        lines = [_of_config(name, last) for name in names]
        return (*lines[:_ACTIVE], *(f"# {line}" for line in lines[_ACTIVE:]))
    seed = script.flag(*flags.SEED)
    if script.is_hydra:
        return (f"- train{last}", f"# - train{last} seed=1")
    if seed is None or seed.is_positional:
        return (f"- train{last}",)
    join = "=" if seed.is_setting else " "
    return tuple(f"- train{last} {seed.word}{join}{number}" for number in (1, 2))


def _of_config(config: str, last: str) -> str:
    return f"{typed(config)} train{last}{_named(config)}"


def _order(name: str) -> tuple[bool, str]:
    return "train" not in PurePosixPath(name).name, name


def _named(config: str) -> str:
    """A name for the cell where the config's own cannot be one, such as one with a blank."""
    stem = PurePosixPath(config).stem
    if cell_name.CELL_NAME.fullmatch(stem):
        return ""
    fit = re.sub(r"[^\w.+=@,-]+", "-", stem).lstrip("_.+=@,-")
    return f" name={fit[:80].rstrip('.')}" if fit.rstrip(".") else ""
