"""A program that the agent started while the cell before still runs: it waits to be let in.

Until then it touches nothing of its cell. Its stdin is a pipe of the agent's: a byte lets it in,
and an end says that it is not needed, or that the agent is gone.
"""

from __future__ import annotations

import importlib
import os
import select

from onbox.cell.wrapper.prepared import Prepared

LET_IN = b"1"
# What an attempt needs before its script starts, and soon after: loaded while nobody waits.
_FIRST, _SOON = ("onbox.machine.secret_env", "json"), ("onbox.cell.wrapper.watch",)


def until_let_in(argv: tuple[str, ...], cookie: str, log: str) -> Prepared | None:
    """The launcher that was prepared meanwhile; all else is then as if it had been started only
    now, with the cell's log as its terminal. None where it is not let in. Raises OSError.
    """
    folder = os.getcwd()  # noqa: PTH109  (without Path, here and below)
    launcher = Prepared(argv, cookie)
    for name in (*_FIRST, *(() if _is_said() else _SOON)):
        importlib.import_module(name)
    if os.read(0, 1) != LET_IN:
        launcher.end()
        return None
    os.chdir(folder)  # another may lie there by now
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    for path, how, to in ((os.devnull, os.O_RDONLY, (0,)), (log, flags, (1, 2))):
        fd = os.open(path, how | os.O_CLOEXEC, 0o644)
        for at in to:
            os.dup2(fd, at)
        os.close(fd)
    return launcher


def _is_said() -> bool:
    """Whether somebody waits for it already: a cell that ends at once is soon over."""
    return bool(select.select([0], [], [], 0)[0])
