"""The program of the next attempt, started before its cell is known.

A shell and an interpreter start while a cell runs or none is there to run, and not in the gap
between two cells, nor after a line was appended. It waits for a cell's words, and touches nothing
of any cell until then: no claim, no folder, no event. It ends with the agent.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from boxcar.shared.cell.said import SaidCell
from onbox.cell import wrapper_words
from onbox.cell.wrapper import waiting
from onbox.cell.wrapper.words import LOADS_AFTER_S, WAITS

# Its run_one.sh says that it may be started so: no hook of a profile's is in it.
MAY_WAIT = "# boxcar: may-wait"
# Before these run_one.sh does nothing but look: it writes no config, and takes no port.
_LAUNCHERS = ("python", "torchrun")
_END_S = 5.0
# Of a command: bash and run_one.sh.
_PROGRAM = 2


def may_wait(run_one: Path, what: SaidCell, code: Path) -> bool:
    """Whether an attempt at this cell may be started before its turn. `code` is where its code
    lies: a cell's own folder, in which it may be told to work, is not there yet.
    """
    is_plain = what.launcher in _LAUNCHERS and what.nodes == 1 and what.workdir == str(code)
    return is_plain and MAY_WAIT in run_one.read_text(errors="replace")


def _of_no_cell(command: Sequence[str]) -> list[str]:
    return [*command[:_PROGRAM], *wrapper_words.of_no_cell(command[_PROGRAM:])]


class Ahead:
    """At most one such program."""

    def __init__(self) -> None:
        self._command: list[str] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._given_up: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str], *, loads_after_s: float | None) -> None:
        """Start what can be let in with such a command, unless it is there. Raises OSError.

        After `loads_after_s` it loads torch, where its launcher is torchrun; None: it does not.
        """
        frame = _of_no_cell(command)
        if self._child and self._child.poll() is None and self._command == frame:
            return
        self.give_up()
        self._command = frame
        loads = {} if loads_after_s is None else {LOADS_AFTER_S: f"{loads_after_s:.1f}"}
        self._child = subprocess.Popen(
            frame,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, WAITS: "1", **loads},
        )

    def let_in(self, command: Sequence[str]) -> subprocess.Popen[bytes] | None:
        """The program that waits, from now on at work at this; None where none waits for such."""
        child, message = self._child, waiting.spelled(command[_PROGRAM:])
        is_such = self._command == _of_no_cell(command) and len(message) <= waiting.MOST_BYTES
        if child is None or child.stdin is None or not is_such or child.poll() is not None:
            self.give_up()
            return None
        try:
            os.write(child.stdin.fileno(), message)
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
