"""One smoke or rehearsal of a run at a time, and who it is that is there.

Two locks: `.smoke` is the verb's alone, `.lock` is inherited by what it tries. So a try that goes
on without its verb (which was killed) is told from a verb that works.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import TemporaryError
from boxcar.shared.sentence import Sentence, _, mark


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[int]:
    """The descriptor that a try has to inherit. Raises TemporaryError, with who is there."""
    with contextlib.ExitStack() as held:
        _hold(
            held,
            folder / ".smoke",
            mark(
                "{folder}: another smoke or rehearse of this run is at work there (process "
                "{pid}). Wait for its end, or end it: kill {pid}"
            ),
            _verbs_pid(folder),
        )
        _note(_verbs_pid(folder), os.getpid())
        fd = _hold(
            held,
            folder / ".lock",
            mark(
                "{folder}: a try goes on there whose smoke or rehearse was killed. End it, then "
                "run this again: kill -- -{pid}"
            ),
            _trys_pid(folder),
        )
        yield fd


def begin_try(folder: Path) -> None:
    """To be called before a try is started: what is noted is of an earlier one."""
    _trys_pid(folder).unlink(missing_ok=True)


def note_try(folder: Path, pid: int) -> None:
    """The try's process, which is also its group."""
    _note(_trys_pid(folder), pid)


def _hold(held: contextlib.ExitStack, file: Path, sentence: str, noted: Path) -> int:
    fd = lock.hold(file)
    if fd is None:
        raise TemporaryError(_who(file, sentence, noted))
    held.callback(os.close, fd)
    return fd


def _who(file: Path, sentence: str, noted: Path) -> Sentence:
    """With the process, if one is noted; else with how a person finds it."""
    try:
        return Sentence(sentence, folder=file.parent, pid=int(noted.read_text()))
    except (OSError, ValueError):
        return _(
            "{folder}: somebody is at work there. To see which process: lsof {file}. Run this "
            "again when it has ended",
            folder=file.parent,
            file=shlex.quote(str(file)),
        )


def _note(file: Path, pid: int) -> None:
    atomic.write_whole(file, f"{pid}\n".encode())


def _verbs_pid(folder: Path) -> Path:
    return folder / ".smoke.pid"


def _trys_pid(folder: Path) -> Path:
    return folder / ".try.pid"
