"""Looks at what the launcher has started, writes it down, and ends it where that is another number
of ranks.

A launcher may start fewer than it was asked for, and the training goes on with another batch size
and another result. A script need import nothing of ours to be seen here: every launcher tells its
ranks their number and how many they are.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boxcar.shared.cell import launch
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Process, Processes
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.paths import ScratchPaths
from onbox.machine import process

LEFTOVER_GRACE_S = 5.0
# Before the first look at what the launcher has started: no sooner has it started anything.
FIRST_LOOK_S = 0.5
# While no rank was seen: an interpreter that starts and ends at once is there for as long. Such a
# look takes a twentieth of a core at most.
_UNTIL_SEEN_S = 0.02
_PAUSES = 20


class Watch:
    def __init__(
        self,
        spec: AttemptSpec,
        scratch: ScratchPaths,
        argv: Sequence[str],
        find: Callable[[], list[int]],
        log_fd: int,
    ) -> None:
        """`find` finds what lives of the attempt, and `log_fd` gets the sentence where it ends."""
        self.wrong_ranks: int | None = None
        self._argv, self._ranks = argv, launch.ranks_to_form(spec)
        self._find, self._log_fd = find, log_fd
        self._record = Record(scratch, spec.cell, spec.attempt)
        self._is_open = self._ranks is not None
        # With its start time, each rank that was ever seen.
        self._seen: dict[int, str | None] = {}
        # Of several ranks it is seen how many form, however short they are.
        is_soon = (self._ranks or 1) > 1
        self._first_at = time.monotonic() + (0.0 if is_soon else FIRST_LOOK_S)
        self._next_whole_at = 0.0

    def look(self, launcher: int) -> float:
        """How many seconds the next look may wait."""
        if (left_s := self._first_at - time.monotonic()) > 0:
            return left_s
        if self._is_open and time.monotonic() < self._next_whole_at:
            began = time.process_time()
            self._take(formed(launcher, self._argv, is_quick=True))
            return max(_UNTIL_SEEN_S, _PAUSES * (time.process_time() - began))
        pause_s = self._record.look()
        self._next_whole_at = time.monotonic() + pause_s
        if self._ranks is not None:
            self._seen |= {pid: process.start_time(pid) for pid in ranks(launcher)}
        if self._is_open:
            self._take(formed(launcher, self._argv))
        return _UNTIL_SEEN_S if self._is_open else pause_s

    def found_wrong(self, rc: int) -> dict[str, Any]:
        """Once the launcher has ended: where another number of ranks formed than was asked for,
        both; and how many live on where its code says that all is well.
        """
        found: dict[str, Any] = {}
        if self.wrong_ranks is not None:
            found |= {"ranks_asked": self._ranks, "ranks_formed": self.wrong_ranks}
        if rc == 0 and (living := self._living_ranks()):
            found |= {"ranks_alive": living}
        return found

    def _living_ranks(self) -> int:
        """How many of those that were seen have not ended."""
        starts = self._seen.items()
        return sum(
            started is not None and process.start_time(pid) == started for pid, started in starts
        )

    def _take(self, count: int | None) -> None:
        if count is None:
            return
        self._is_open = False
        if count != self._ranks:
            self.wrong_ranks = count
            self._end(f"the launcher was asked for {self._ranks} ranks and formed {count}")

    def _end(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._log_fd, f"boxcar: {text}: this attempt is ended\n".encode())
        end_soon(self._find)


def end_soon(find: Callable[[], list[int]]) -> None:
    """Where nobody asked for a stop."""
    process.end_all(find, LEFTOVER_GRACE_S)


# --- what was started, written down: a daemon that has left its session, its environment and its
# files behind is known by nothing but its parents, and these are gone with the wrapper

LOOK_EVERY_S = 1.0
# A box with thousands of processes is not looked through all the time.
_LEAST_PAUSES = 100


class Record:
    """The wrapper's: `look` writes down its living descendants where they have changed."""

    def __init__(self, scratch: ScratchPaths, cell: str, attempt: int) -> None:
        self._path = scratch.processes(cell)
        self._cell, self._attempt = cell, attempt
        self._written: tuple[Process, ...] | None = None

    def look(self) -> float:
        """How many seconds the next look may wait."""
        began = time.monotonic()
        found = tuple(
            Process(pid, started)
            for pid in sorted(process.descendants(os.getpid()))
            if (started := process.start_time(pid))
        )
        if found != self._written:
            made = Processes(self._cell, self._attempt, process.boot_id(), found)
            with contextlib.suppress(OSError):  # a full disk: the next look tries again
                atomic.write_whole(self._path, codec.to_document(made))
                self._written = found
        return max(LOOK_EVERY_S, _LEAST_PAUSES * (time.monotonic() - began))


# --- how many ranks really formed, read from the environment of the ranks themselves

# Together they tell a world from the one around it, which a container's platform may have preset.
_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT")
_OF_RANK = {"RANK", "LOCAL_RANK", "WORLD_SIZE"}
_PYTHON_OPTIONS = ("-u", "-m")


def formed(launcher: int, argv: Sequence[str], *, is_quick: bool = False) -> int | None:
    """How many ranks this launcher, started as `argv`, has formed; None while none is seen.

    The ranks nearest to the launcher count: a script may start others of its own. Where the
    launcher runs the script as a plain process, that is one. What cannot be read is no evidence.
    `is_quick`: by the kernel's own lists, which may miss one while another ends.
    """
    preset = _variables(launcher)
    generations = process.listed_generations if is_quick else process.generations
    for generation in generations(launcher):
        for pid in generation:
            found = _variables(pid)
            if found != preset and found.get("WORLD_SIZE", "").isdecimal():
                return int(found["WORLD_SIZE"])
        if any(_is_plain_script(pid, argv, preset) for pid in generation):
            return 1
    return None


def ranks(launcher: int) -> list[int]:
    """The living children of a launcher that it has told their rank. Helpers of a script's have
    another parent, and helpers of its own have no rank.
    """
    preset = _variables(launcher)
    children = next(process.generations(launcher), [])
    found = {pid: _variables(pid) for pid in children}
    return [pid for pid, own in found.items() if own != preset and own.keys() >= _OF_RANK]


def _is_plain_script(pid: int, argv: Sequence[str], preset: Mapping[str, str]) -> bool:
    """Its words first: until a rank has come to its exec it has its launcher's environment, and for
    an instant after that its own words and none.
    """
    if not _is_script(process.words(pid), argv):
        return False
    environment = process.environment(pid)
    return bool(environment) and _of(environment) == preset


def _variables(pid: int) -> dict[str, str]:
    return _of(process.environment(pid))


def _of(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in _NAMES if name in environment}


def _is_script(words: Sequence[str], launcher: Sequence[str]) -> bool:
    """Whether a process runs what stands at the end of the launcher's own command."""
    own = list(words[1:])
    if own == list(launcher[1:]):
        return False  # a child that has not come to its exec yet has all of the launcher's words
    while own and own[0] in _PYTHON_OPTIONS:
        own = own[1:]
    return bool(own) and len(own) < len(launcher) - 1 and list(launcher[-len(own) :]) == own
