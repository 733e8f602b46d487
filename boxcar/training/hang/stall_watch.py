"""The watch over one rank: a daemon thread that looks whether steps come, and reports a hang.

It wakes about once a second and compares a counter; it calls no collective and writes nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from boxcar.training.hang import diagnosis, hang_gather, rank_dump, stacks
from boxcar.training.hang.diagnosis import Diagnosis
from boxcar.training.hang.rank_dump import Attempt, RankDump
from boxcar.training.hang.stacks import Frame

# --- A rank that C++ aborts is held for a moment, so that the watch can report it with the others.
# gloo throws in a thread of its own where another rank's collective has another size. That ends the
# process by SIGABRT before a line of Python runs, and a launcher then ends the others. So SIGABRT
# is answered by libc's own `sleep`, which is called with the number of the signal, 6, as its
# seconds: nothing but what is safe in a signal's handler. faulthandler comes first, prints the
# stacks and hands the signal on; that it has done so shows in the handler that is in force.
# Linux. Where the aborting thread holds Python's lock, the process ends 6 seconds later,
# unreported.


# More than a sigaction, whose first member is the handler.
_SIGACTION_BYTES = 512


def hold_aborts(stderr: TextIO) -> None:
    """Have SIGABRT held from now on; the stacks are printed to `stderr`.

    A handler of the script's own stays. Raises OSError, ValueError, AttributeError.
    """
    # It hands a signal on to the handler that it found when it was enabled.
    faulthandler.disable()
    if sys.platform == "linux" and _handler() == 0:
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        libc.signal.restype = ctypes.c_void_p
        libc.signal(int(signal.SIGABRT), _sleep())
    faulthandler.enable(stderr)


def is_abort_held() -> bool:
    """Whether this process was aborted, and ends in a few seconds. Takes a microsecond."""
    return sys.platform == "linux" and _handler() == _sleep()


def _sleep() -> int:
    return ctypes.cast(ctypes.CDLL(None).sleep, ctypes.c_void_p).value or 0


def _handler() -> int:
    action = ctypes.create_string_buffer(_SIGACTION_BYTES)
    ctypes.CDLL(None).sigaction(int(signal.SIGABRT), None, action)
    return ctypes.c_void_p.from_buffer(action).value or 0


# Before the backend's own time-out, whose watchdog may abort the process from C++.
_SHARE_OF_TIMEOUT = 0.9
_TICK_S = 1.0
# A main thread that used less of the time than this was waiting. On a busy box one that computes
# gets little, too.
_IDLE_SHARE = 0.05
# For the dumps of the others; it is used up only where a rank is silent.
_GRACE_S = 15.0
# The one whose error it was ends first, so that the launcher reports it as the cause.
_FOLLOW_S = 1.0


class StallWatch:
    """The watch over this rank. `folder` is {out}/hang, made when there is something to say."""

    def __init__(self, folder: Path, timeout_s: float, rank: int = 0, world: int = 1) -> None:
        self.folder, self.rank, self.world = folder, rank, world
        self.timeout_s = self._patience_s = timeout_s * _SHARE_OF_TIMEOUT
        self._tick_s = min(_TICK_S, self.timeout_s / 5)
        self._attempt = Attempt.of_this_process(os.environ)
        self._beats = 0
        self._step: int | None = None
        self._last_place: Frame | None = None
        self._patient = 0
        self._stop, self._reporting, self._pid = threading.Event(), threading.Lock(), os.getpid()
        self._is_done = False
        self._thread = threading.Thread(target=self._run, name="boxcar-stall", daemon=True)

    @property
    def is_over(self) -> bool:
        """Whether this rank has left, or failed."""
        return self._stop.is_set()

    def start(self) -> None:
        """Begin to watch; what an earlier attempt left in the folder is taken away."""
        with contextlib.suppress(OSError):
            hang_gather.begin(self.folder, self._attempt, self.rank)
        self._thread.start()

    def beat(self, step: int | None = None) -> None:
        """A step was done. Takes about a microsecond."""
        self._beats += 1
        if step is not None:
            self._step = step
        self._last_place = stacks.last_place(sys._getframe(1))

    @contextlib.contextmanager
    def patient(self) -> Iterator[None]:
        """Inside, this rank waits for one that may work for long, and does not call it a hang."""
        self._patient += 1
        try:
            yield
        finally:
            self._patient -= 1
            self._beats += 1

    def leave(self) -> None:
        """End the watch, and tell the others that this rank goes. A second call does nothing."""
        if self._stop.is_set() or os.getpid() != self._pid:
            return
        self._stop.set()
        # In a `finally`, an error may be on its way to the hook: then there is more to say.
        error = sys.exc_info()[1]
        self._is_done = not isinstance(error, Exception)
        if self.world == 1:
            return
        dump = self._goodbye(error if isinstance(error, Exception) else None)
        # A report under way would write over this goodbye, or take it away with the dump before it.
        with self._reporting, contextlib.suppress(OSError):
            rank_dump.write(self.folder, dump)
            hang_gather.end_well(self.folder, self._attempt, self.world)

    def failed(self, error: BaseException) -> int:
        """An error ends this rank: report it together with the others; the exit code for it."""
        if self._is_done or os.getpid() != self._pid or self.world == 1:
            return 1
        self._is_done = True
        self._stop.set()
        with self._reporting:
            dump = rank_dump.take(*self._me(), stacks.of_error(error), error=error, **self._facts())
            found = self._settle(dump)
        return found.exit_code if found and dump.is_follower else 1

    def _goodbye(self, error: Exception | None) -> RankDump:
        if error is None:
            return rank_dump.left(*self._me(), stacks.of_caller(), **self._facts())
        frames = stacks.of_error(error)
        dump = rank_dump.take(*self._me(), frames, error=error, **self._facts())
        return dataclasses.replace(dump, state="left")

    def _run(self) -> None:
        seen, silent_s = -1, 0.0
        before, cpu_before = time.monotonic(), _main_cpu_s()
        while not self._stop.wait(self._tick_s):
            now, cpu = time.monotonic(), _main_cpu_s()
            # Not the clock's own difference: a process that was stopped for an hour is not stuck.
            silent_s += min(now - before, 2 * self._tick_s)
            is_idle = cpu - cpu_before < _IDLE_SHARE * (now - before)
            before, cpu_before = now, cpu
            if self._beats != seen:
                seen, silent_s, self._patience_s = self._beats, 0.0, self.timeout_s
            if is_abort_held():
                self._report_abort()
                return
            is_stalled = silent_s >= self._patience_s and not self._patient
            if is_stalled or self._is_called():
                self._report(is_idle=is_idle, silent_s=silent_s, is_stalled=is_stalled)
                silent_s = 0.0 if is_stalled else silent_s

    def _is_called(self) -> bool:
        if self.world == 1:
            return False
        try:
            return hang_gather.is_trouble(self.folder, self._attempt)
        except OSError:
            return False

    def _report(self, *, is_idle: bool, silent_s: float, is_stalled: bool) -> None:
        with self._reporting:
            if self._stop.is_set():
                return
            frames = stacks.of_main_thread()
            facts = {**self._facts(), "silent_s": round(silent_s, 1)}
            dump = rank_dump.take(*self._me(), frames, is_idle=is_idle, **facts)
            found = self._settle(dump)
            if found and (is_stalled or dump.waits == "collective"):
                time.sleep(min(_FOLLOW_S, self.timeout_s) if found.exit_code == 1 else 0)
                end_process(found.exit_code)
        self._patience_s *= 2 if is_stalled else 1

    def _report_abort(self) -> None:
        """C++ ends this process in a few seconds: report it together with the others."""
        if self.world == 1:
            return
        with self._reporting:
            frames = stacks.of_main_thread()
            dump = rank_dump.take(*self._me(), frames, is_idle=True, **self._facts())
            found = self._settle(dataclasses.replace(dump, state="aborted"))
            if found:
                end_process(found.exit_code)

    def _settle(self, dump: RankDump) -> Diagnosis | None:
        """A disk that takes no dump must not keep the report from stderr."""
        grace_s = min(_GRACE_S, 2 * self.timeout_s)
        try:
            rank_dump.write(self.folder, dump)
            return hang_gather.settle(self.folder, self._attempt, dump, grace_s)
        except OSError as error:
            hang_gather.say(f"boxcar: {self.folder}: no dump was written: {error}")
            found = diagnosis.diagnose([dump], world=1)
            hang_gather.say(diagnosis.report(found, [dump]))
            return found if found.kind != diagnosis.SLOW else None

    def _me(self) -> tuple[Attempt, int, int]:
        return self._attempt, self.rank, self.world

    def _facts(self) -> dict[str, Any]:
        at = stacks.code_line_of_frame(self._last_place) if self._last_place else None
        return {"step": self._step, "last_step_at": at, "is_patient": self._patient > 0}


def end_process(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def _main_cpu_s() -> float:
    """CPU time that the main thread has used; not known outside Linux: there it never waits."""
    ident = threading.main_thread().ident
    if ident is None or not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(ident))
