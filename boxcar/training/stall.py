"""A watch over every rank that costs nothing while steps come, and ends a hang with a diagnosis.

    stall.watch(stall.folder_of(os.environ), timeout_s, rank, world)   # ranks.join
    stall.beat(step)                   # each step: progress, accumulator, loader
    stall.leave()                      # ranks.leave

Each rank has a daemon thread (hang/stall_watch.py). When no beat came for `timeout_s`, each rank
writes where it is to {out}/hang/rank_00001.json, the lowest rank that lives reports
(hang/diagnosis.py), and all of them end with the report's exit code, by os._exit, because the
main thread is stuck in C++. An error that ends a rank leads to the same report, and so does an
abort in C++. Ranks that merely compute are said to be slow, and go on.

A rank that leaves says so in the same folder; the last to leave takes the folder away.

Not covered: C code that hangs and holds Python's lock, or a rank that is stopped. Such a rank is
silent; the others name it and end. With one rank alone nobody is left to tell. Nor a rank that the
launcher ends by SIGTERM before it has found out that another was killed (Preemption keeps it).
"""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from boxcar.shared.errors import BoxcarError
from boxcar.training.hang import stall_watch
from boxcar.training.hang.stall_watch import StallWatch

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
                stall_watch.hold_aborts(sys.__stderr__)
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
            stall_watch.end_process(code)

    hook.is_boxcars = True  # type: ignore[attr-defined]
    sys.excepthook = hook
