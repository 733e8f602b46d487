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
# What is said: these words call, and GO follows; or they let in, without more, as an older agent
# says it.
CALLS, GO, LET_IN = b".", b"g", b"!"
_LENGTH_BYTES = 2
_READ_BYTES = 1 << 16
# Beside begin.py, where both are staged.
TORCHRUN = "torchrun.py"
# Until then the cell that has just begun has the cores, and one that ends at once needs none of it.
_LATER_S = 0.15
# What an attempt may need before its script starts, and soon after: loaded while nobody waits.
_LATER = ("onbox.machine.secret_env", "json", "pathlib", "onbox.cell.wrapper.watch")


def until_let_in(said: Said, launcher: Prepared) -> tuple[bytes, list[str]] | None:
    """How it is let in, with the cell's words as run_one.sh gets them; None where it is not. Raises
    OSError.
    """
    folder, later = os.getcwd(), list(_LATER)  # noqa: PTH109  (without Path, here and below)
    pause_s = _LATER_S
    while later and not said.is_there(pause_s):
        __import__(later.pop(0))
        pause_s = 0.0
    told = said.next()
    if told is None:
        launcher.end()
        return None
    os.chdir(folder)  # another may lie there by now
    return told


class Said:
    """What the agent says, message by message."""

    def __init__(self) -> None:
        self._fd = os.dup(0)  # the cell's log takes its place
        self._left = b""

    def is_there(self, within_s: float = 0.0) -> bool:
        return bool(self._left or select.select([self._fd], [], [], within_s)[0])

    def next(self) -> tuple[bytes, list[str]] | None:
        """Its kind, and its words; None for an end."""
        while (length := self._length()) is None:
            more = os.read(self._fd, _READ_BYTES)
            if not more:
                return None
            self._left += more
        message, self._left = self._left[_LENGTH_BYTES:length], self._left[length:]
        return message[:1], [os.fsdecode(word) for word in message[1:].split(b"\0")]

    def close(self) -> None:
        os.close(self._fd)

    def _length(self) -> int | None:
        """Of the message that is there whole."""
        length = _LENGTH_BYTES + int.from_bytes(self._left[:_LENGTH_BYTES], "big")
        return length if _LENGTH_BYTES <= length <= len(self._left) else None


def meanwhile(argv: tuple[str, ...], after_s: str) -> tuple[str, ...]:
    """What loads torch for this launcher, after some time; nothing where it needs none, or that is
    not staged, or no time is said.
    """
    script = f"{sys.argv[0].rpartition('/')[0]}/{TORCHRUN}"
    is_torchrun = argv[1:3] == ("-m", "torch.distributed.run")
    is_to_load = after_s and is_torchrun and os.access(script, os.R_OK)
    return (argv[0], script, after_s) if is_to_load else ()


def spelled(kind: bytes, words: Sequence[str]) -> bytes:
    """A message; more than MOST_BYTES are not said."""
    message = kind + b"\0".join(map(os.fsencode, words))
    return len(message).to_bytes(_LENGTH_BYTES, "big") + message


def take_terminal(log: str) -> None:
    """As if it had been started only now, with the cell's log as its terminal. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    take_log(os.open(log, flags | os.O_CLOEXEC, 0o644))
