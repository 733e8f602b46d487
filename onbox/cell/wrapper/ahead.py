"""The program of the next attempt, started before its cell is known.

A shell and an interpreter start while a cell runs or none is there to run, and not in the gap
between two cells, nor after a line was appended. It waits for a cell's words, and touches nothing
of any cell until then: no claim, no folder, no event. It ends with the agent.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from boxcar.shared.cell.said import SaidCell
from onbox.cell import wrapper_words
from onbox.cell.wrapper import waiting
from onbox.cell.wrapper.program import TURN
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


def _can_be_called(command: Sequence[str]) -> bool:
    """Whether its program can: a queue may run an older release's."""
    return (Path(command[1]).parent / TURN).is_file()


def _started(frame: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """The program, which waits: what it is told does not wait for it. Raises OSError."""
    child = subprocess.Popen(
        frame,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, WAITS: "1", **variables},
    )
    if child.stdin:
        os.set_blocking(child.stdin.fileno(), False)
    return child


def _of_no_cell(command: Sequence[str]) -> list[str]:
    return [*command[:_PROGRAM], *wrapper_words.of_no_cell(command[_PROGRAM:])]


class Ahead:
    """At most one such program."""

    def __init__(self) -> None:
        self._command: list[str] = []
        self._child: subprocess.Popen[bytes] | None = None
        # What it is told to go by; None where it was not called.
        self._goes: tuple[bytes, Sequence[str]] | None = None
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
        self._child = _started(frame, loads)

    def call(self, command: Sequence[str]) -> None:
        """The program that waits for such gets ready for this; `go` or `give_up` follows."""
        words = command[_PROGRAM:]
        if self._command != _of_no_cell(command):
            self.give_up()
        elif not _can_be_called(command):  # an older one's words are at once its word to go
            self._goes = (waiting.LET_IN, words)
        elif self._say(waiting.CALLS, words):
            self._goes = (waiting.GO, ())
        else:
            self.give_up()

    def go(self) -> subprocess.Popen[bytes] | None:
        """The program that was called, from now on at work; None where none was."""
        child, goes = self._child, self._goes
        if child is None or goes is None or child.poll() is not None or not self._say(*goes):
            self.give_up()
            return None
        self._forget()
        if child.stdin:
            child.stdin.close()
        return child

    def _say(self, kind: bytes, words: Sequence[str]) -> bool:
        """Whether it was said; not to one that could not be started so."""
        message = waiting.spelled(kind, words)
        if self._child is None or self._child.stdin is None or len(message) > waiting.MOST_BYTES:
            return False
        try:
            os.write(self._child.stdin.fileno(), message)
        except (BrokenPipeError, BlockingIOError):
            return False
        return True

    def _forget(self) -> None:
        self._child = self._goes = None

    def give_up(self) -> None:
        """The one that waits ends by itself, and is not waited for here."""
        child = self._child
        if child and child.stdin:
            child.stdin.close()
            self._given_up.append(child)
        self._forget()
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
