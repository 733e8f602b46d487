"""The program of the next cell's attempt, started while the cell before it runs.

A shell and an interpreter start meanwhile, and not in the gap between two cells. It waits to be
let in, and touches nothing of its cell until then: no claim, no folder, no event. It ends with the
agent.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from boxcar.shared.cell.said import SaidCell
from onbox.cell.wrapper.waiting import LET_IN
from onbox.cell.wrapper.words import WAITS

# Its run_one.sh says that it may be started so: no hook of a profile's is in it.
MAY_WAIT = "# boxcar: may-wait"
# Before these run_one.sh does nothing but look: it writes no config, and takes no port.
_LAUNCHERS = ("python", "torchrun")
_END_S = 5.0


def may_wait(run_one: Path, what: SaidCell, code: Path) -> bool:
    """Whether an attempt at this cell may be started before its turn. `code` is where its code
    lies: a cell's own folder, in which it may be told to work, is not there yet.
    """
    is_plain = what.launcher in _LAUNCHERS and what.nodes == 1 and what.workdir == str(code)
    return is_plain and MAY_WAIT in run_one.read_text(errors="replace")


class Ahead:
    """At most one such program."""

    def __init__(self) -> None:
        self._command: list[str] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._given_up: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str]) -> None:
        """Start it, in the place of one that waits for something else. Raises OSError."""
        if self._child and self._child.poll() is None and self._command == list(command):
            return
        self.give_up()
        self._command = list(command)
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, WAITS: "1"},
        )

    def let_in(self, command: Sequence[str]) -> subprocess.Popen[bytes] | None:
        """The program that waits for this, from now on at work; None where there is none."""
        child = self._child
        if child is None or child.stdin is None or self._command != list(command):
            self.give_up()
            return None
        try:
            os.write(child.stdin.fileno(), LET_IN)
        except BrokenPipeError:
            self.give_up()  # it could not be started so
            return None
        child.stdin.close()
        self._child = None
        return child

    def give_up(self) -> None:
        """The one that waits ends by itself, and is not waited for here."""
        child, self._child = self._child, None
        if child and child.stdin:
            child.stdin.close()
            self._given_up.append(child)
        self._given_up = [one for one in self._given_up if one.poll() is None]

    def close(self) -> None:
        """None is left when this returns."""
        self.give_up()
        for child in self._given_up:
            try:
                child.wait(_END_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
