# ruff: noqa: PTH100, PTH109, PTH115, PTH118, PTH119, PTH120
"""Notes what a Python process writes outside of its {out}, by an audit hook.

This file is copied as `sitecustomize.py` into a folder on the PYTHONPATH of a rehearsed cell. So it
imports the standard library alone, without pathlib, for which each Python of the cell would pay;
and it must never be the reason why a training fails. A sitecustomize that was there before runs.

BOXCAR_REHEARSE_WRITES names the file for the notes, BOXCAR_REHEARSE_WORK the folder that does not
count as outside. Not seen: writes of C and C++ libraries, of other programs, and of a Python that
was started with -S, -I or -E.
"""

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
from typing import Any

WRITES = "BOXCAR_REHEARSE_WRITES"
WORK = "BOXCAR_REHEARSE_WORK"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# event -> (which argument is a path, which one the descriptor of its folder, what happens to it)
_EVENTS = {
    "os.mkdir": ((0, 2, "made"),),
    "os.remove": ((0, 1, "removed"),),
    "os.rmdir": ((0, 1, "removed"),),
    "os.rename": ((0, 2, "moved away"), (1, 3, "written")),
    "os.link": ((1, 3, "made"),),
    "os.symlink": ((1, 2, "made"),),
    "os.truncate": ((0, None, "written"),),
    "sqlite3.connect": ((0, None, "written"),),
    "tempfile.mkstemp": ((0, None, "temporary"),),
    "tempfile.mkdtemp": ((0, None, "temporary"),),
}
_LIBRARIES = (os.path.dirname(os.__file__), "site-packages", "dist-packages")
_MOST = 10_000


class Recorder:
    """The hook. One line for each event and path; a path of the devices is none."""

    def __init__(self, notes: str, work: str) -> None:
        self.notes, self.own = notes, os.path.realpath(work) + os.sep
        self.seen: set[tuple[str, str]] = set()
        self.at_work = threading.local()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" and event not in _EVENTS:
            return
        if getattr(self.at_work, "is_busy", False):
            return
        self.at_work.is_busy = True
        try:
            for path, what in _changed(event, arguments):
                self.note(what, path)
        # An audit hook that raises would forbid the write itself.
        except Exception:
            return
        finally:
            self.at_work.is_busy = False

    def note(self, what: str, path: str) -> None:
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        is_own = (path + os.sep).startswith((self.own, "/dev/null", "/dev/tty", "/proc/"))
        if is_own or (what, path) in self.seen or len(self.seen) >= _MOST:
            return
        self.seen.add((what, path))
        was_there = os.path.lexists(path)
        # What will change nothing: `exist_ok`, `missing_ok`.
        if was_there == (what == "made") and what in ("made", "removed"):
            return
        line = {"path": path, "what": what, "by": _by(), "was_there": was_there}
        fd = os.open(self.notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, json.dumps(line).encode() + b"\n")
        finally:
            os.close(fd)


def _changed(event: str, arguments: tuple[Any, ...]) -> list[tuple[str, str]]:
    """The absolute paths that an event is about to change, and what happens to each."""
    if event == "open":
        path, mode, flags = arguments
        is_write = any(char in "wax+" for char in mode or "") or bool((flags or 0) & _WRITING)
        return [(_absolute(path, -1), "written")] if is_write and not isinstance(path, int) else []
    found = []
    for at, folder_at, what in _EVENTS[event]:
        folder = arguments[folder_at] if folder_at is not None else -1
        # A descriptor is a file that was opened before; ":memory:" and URIs are sqlite's own.
        if isinstance(arguments[at], int) or str(arguments[at]).startswith((":memory:", "file:")):
            continue
        found.append((_absolute(arguments[at], folder), what))
    return found


def _absolute(path: Any, folder: int) -> str:
    here = os.getcwd() if folder == -1 else os.readlink(f"/proc/self/fd/{folder}")
    return os.path.abspath(os.path.join(here, os.fsdecode(path)))


def _by() -> str:
    """The line of the user's own code that asked for it, such as /code/train.py:12."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name != __file__ and not name.startswith("<") and not _is_library(name):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _is_library(name: str) -> bool:
    return any(part in name for part in _LIBRARIES)


def _run_the_other(here: str) -> None:
    """The sitecustomize that this one hides."""
    others = [path for path in sys.path if os.path.realpath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    with contextlib.suppress(KeyError):
        sys.addaudithook(Recorder(os.environ[WRITES], os.environ[WORK]))
    _run_the_other(os.path.dirname(os.path.realpath(__file__)))
