"""A program that the agent started before it knew of which cell: it waits to be let in.

Until then it knows of no cell, and touches none. Its stdin is a pipe of the agent's: the words of a
cell let it in, and an end says that it is not needed, or that the agent is gone.
"""

from __future__ import annotations

import os
import select
import sys

from onbox.cell.wrapper.launcher import take_log
from onbox.cell.wrapper.prepared import Prepared

# Not typing's: see launcher.py.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# So much arrives whole or not at all, and whoever writes it never waits for the reader.
MOST_BYTES = select.PIPE_BUF
# How a message begins, behind the length of what follows. At the other end may be an older release:
# its agent says, and its program takes, other kinds as well.
_LET_IN, _LENGTH_BYTES = b"!", 2
# Beside begin.py, where both are staged.
TORCHRUN = "torchrun.py"
# Until then the cell that has just begun has the cores, and one that ends at once needs none of it.
_LATER_S = 0.15
# What an attempt may need before its script starts, and soon after: loaded while nobody waits.
_LATER = ("onbox.machine.secret_env", "json", "pathlib", "onbox.cell.wrapper.watch")


def until_let_in(launcher: Prepared) -> list[str] | None:
    """The cell's words as run_one.sh gets them; None where it is not let in. Raises OSError."""
    folder, later = os.getcwd(), list(_LATER)  # noqa: PTH109  (without Path, here and below)
    pause_s = _LATER_S
    while later and not _is_said(pause_s):
        __import__(later.pop(0))
        pause_s = 0.0
    said = os.read(0, MOST_BYTES)
    if not said:
        launcher.end()
        return None
    os.chdir(folder)  # another may lie there by now
    return [os.fsdecode(word) for word in said[_LENGTH_BYTES + len(_LET_IN) :].split(b"\0")]


def _is_said(within_s: float) -> bool:
    """Whether somebody waits for it already: a cell that ends at once is soon over."""
    return bool(select.select([0], [], [], within_s)[0])


def meanwhile(argv: tuple[str, ...], after_s: str) -> tuple[str, ...]:
    """What loads torch for this launcher, after some time; nothing where it needs none, or that is
    not staged, or no time is said.
    """
    script = f"{sys.argv[0].rpartition('/')[0]}/{TORCHRUN}"
    is_torchrun = argv[1:3] == ("-m", "torch.distributed.run")
    is_to_load = after_s and is_torchrun and os.access(script, os.R_OK)
    return (argv[0], script, after_s) if is_to_load else ()


def spelled(words: Sequence[str]) -> bytes:
    """What lets it in with these; more than MOST_BYTES are not said."""
    message = _LET_IN + b"\0".join(map(os.fsencode, words))
    return len(message).to_bytes(_LENGTH_BYTES, "big") + message


def take_terminal(log: str) -> None:
    """As if it had been started only now, with the cell's log as its terminal. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    take_log(os.open(log, flags | os.O_CLOEXEC, 0o644))
