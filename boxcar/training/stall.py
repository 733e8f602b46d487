"""A watch over every rank that costs nothing while steps come, and ends a hang with a diagnosis.

    stall.watch(stall.folder_of(os.environ), timeout_s, rank, world)   # ranks.join
    stall.beat(step)                   # each step: progress, accumulator, loader
    stall.leave()                      # ranks.leave

A daemon thread per rank wakes about once a second and compares a counter; it calls no collective
and writes nothing. When no beat came for `timeout_s`, each rank writes where it is to
{out}/hang/rank_00001.json, the lowest rank that lives reports (hang_report.py), and all of them end
with the report's exit code, by os._exit, because the main thread is stuck in C++. An error that
ends a rank leads to the same report, and so does an abort in C++. Ranks that merely compute are
said to be slow, and go on.

A rank that leaves says so in the same folder; the last to leave takes the folder away.

Not covered: C code that hangs and holds Python's lock, or a rank that is stopped. Such a rank is
silent; the others name it and end. With one rank alone nobody is left to tell. Nor a rank that the
launcher ends by SIGTERM before it has found out that another was killed (Preemption keeps it).
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from boxcar.shared.errors import BoxcarError
from boxcar.training.hang import (
    abort,
    code_line,
    diagnosis,
    hang_gather,
    hang_report,
    rank_dump,
    stacks,
)
from boxcar.training.hang.attempt import Attempt
from boxcar.training.hang.diagnosis import Diagnosis
from boxcar.training.hang.rank_dump import RankDump
from boxcar.training.hang.stacks import Frame

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
            if abort.is_held():
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
                _end(found.exit_code)
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
                _end(found.exit_code)

    def _settle(self, dump: RankDump) -> Diagnosis | None:
        """A disk that takes no dump must not keep the report from stderr."""
        grace_s = min(_GRACE_S, 2 * self.timeout_s)
        try:
            rank_dump.write(self.folder, dump)
            if native := rank_dump.py_spy(dump.pid, timeout_s=grace_s):
                dump = dataclasses.replace(dump, py_spy=native)
                rank_dump.write(self.folder, dump)
            return hang_gather.settle(self.folder, self._attempt, dump, grace_s)
        except OSError as error:
            hang_gather.say(f"boxcar: {self.folder}: no dump was written: {error}")
            found = diagnosis.diagnose([dump], world=1)
            hang_gather.say(hang_report.text(found, [dump]))
            return found if found.kind != diagnosis.SLOW else None

    def _me(self) -> tuple[Attempt, int, int]:
        return self._attempt, self.rank, self.world

    def _facts(self) -> dict[str, Any]:
        at = code_line.of_frame(self._last_place) if self._last_place else None
        return {"step": self._step, "last_step_at": at, "is_patient": self._patient > 0}


# None or one: a process is watched once.
_watching: list[StallWatch] = []


def folder_of(env: Mapping[str, str]) -> Path:
    """Where this job's ranks meet: {out}/hang, or a folder of its own beside the script, because
    several jobs may be started in one place."""
    if out := env.get("BOXCAR_OUT"):
        return Path(out, "hang")
    return Path(f"hang-{env.get('MASTER_PORT', 'alone')}")


def watch(folder: Path, timeout_s: float, rank: int = 0, world: int = 1) -> StallWatch:
    """Begin to watch this process; a watch that runs already stays, and is returned."""
    if not _watching or _watching[0].is_over:
        _watching[:] = [StallWatch(folder, timeout_s, rank, world)]
        _watching[0].start()
        chain_the_hook()
        # A notebook's stderr is no file.
        with contextlib.suppress(OSError, ValueError, AttributeError, RuntimeError):
            if sys.__stderr__ is not None and world > 1:
                abort.hold(sys.__stderr__)
        atexit.register(_watching[0].leave)
    return _watching[0]


def beat(step: int | None = None) -> None:
    """A step was done, a batch was read, a line was reported. Does nothing where nobody watches."""
    for each in _watching:
        each.beat(step)


def patient() -> contextlib.AbstractContextManager[None]:
    """Around a wait for a rank that may measure or save for long; the backend's own time-out ends
    it. When all that wait are patient, the others are slow and nothing is ended."""
    return _watching[0].patient() if _watching else contextlib.nullcontext()


def leave() -> None:
    """This rank needs the others no more."""
    for each in _watching:
        each.leave()


@contextlib.contextmanager
def diagnosed() -> Iterator[None]:
    """What runs inside ends with a diagnosis; for callers that catch errors themselves.

    This rank's own error goes on as it is. One that only says that another rank is gone becomes
    SystemExit with the report's exit code, after its traceback was printed.
    """
    try:
        yield
    except Exception as error:
        code = _failed(error)
        if code == 1:
            raise
        sys.__excepthook__(type(error), error, error.__traceback__)
        raise SystemExit(code) from error
    finally:
        leave()


def _failed(error: BaseException) -> int:
    return _watching[0].failed(error) if _watching else 1


def chain_the_hook() -> None:
    """From now on an uncaught error is reported with the other ranks', and one of ours ends the
    process with its own exit code."""
    before = sys.excepthook
    if getattr(before, "is_boxcars", False):
        return

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        before(kind, error, traceback)
        code = _failed(error) if isinstance(error, Exception) else 1
        if code == 1 and isinstance(error, BoxcarError):
            code = error.exit_code
        if code != 1:
            # The interpreter would end with 1, after waiting for a group that is broken.
            _end(code)

    hook.is_boxcars = True  # type: ignore[attr-defined]
    sys.excepthook = hook


def _end(code: int) -> None:
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
