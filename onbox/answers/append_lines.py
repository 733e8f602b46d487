"""Lines for a queue file on the durable tier, and a `#` before lines of it: whole or not at all,
and only where the file is as it was read.

A person may edit the same file, and two laptops may append at once: who did not see what it holds
now is refused.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from boxcar.shared import paths
from boxcar.shared.disk import atomic, digest, lock
from boxcar.shared.errors import Command, InputError, TemporaryError
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import Prefix, RunOnBox

LOCK_S = 5.0
_NOTHING = (0, digest.of_bytes(b""))


def answer(question: run_asks.Append | run_asks.CommentOut, run: RunOnBox) -> run_asks.Appended:
    if isinstance(question, run_asks.CommentOut):
        return _comment_out(question, run)
    return _append_all(question, run)


def _append_all(question: run_asks.Append, run: RunOnBox) -> run_asks.Appended:
    """Append `data` to the queue, which is expected to hold what the laptop has read of it.

    Done twice (an answer was lost) it is done once, and what a killed call wrote of
    it is completed. Raises InputError where somebody else has appended meanwhile.
    """
    path, data = _queue_file(run, question.queue), question.data
    begins = question.expected or _NOTHING
    atomic.make_folder(path.parent)
    whole = data
    if question.expected is not None or not atomic.create_once(path, data):
        with _locked(path):
            whole = _append(path, begins, data)
    return run_asks.Appended(len(whole), digest.of_bytes(whole))


def _comment_out(question: run_asks.CommentOut, run: RunOnBox) -> run_asks.Appended:
    """Write `data` in place of what the laptop has read. Done twice it is done once.

    Raises InputError where the file was changed meanwhile, or `data` does more than it may.
    """
    from boxcar.shared.files import queue_line  # late: who only appends parses no line

    path, data = _queue_file(run, question.queue), question.data
    with _locked(path):
        there = path.read_bytes()
        if there != data:
            if (len(there), digest.of_bytes(there)) != question.expected:
                _refuse_changed(path, question.expected, there)
            if not queue_line.is_commented_out(queue_line.normalise(there), data):
                raise InputError(
                    _("{path}: a line would be changed by more than a # before it", path=path)
                )
            mode = path.stat().st_mode
            atomic.write_whole(path, data)
            path.chmod(mode & 0o777)  # a group that types there goes on to
    return run_asks.Appended(len(data), digest.of_bytes(data))


def _queue_file(run: RunOnBox, queue: str) -> Path:
    """Raises InputError where what is written would land elsewhere."""
    path = run.tier.queue(queue)
    if paths.has_symlink(run.tier.root, f"queues/{path.name}"):
        raise InputError(
            _("{path}: a folder of it is a symbolic link; nothing is written through it", path=path)
        )
    return path


def _refuse_changed(path: Path, begins: Prefix, there: bytes) -> NoReturn:
    raise InputError(
        _(
            "{path}: was changed meanwhile: it had {begins} bytes when it was read, and has {n} "
            "now. Nothing was written. See what came",
            path=path,
            begins=begins[0],
            n=len(there),
        ),
        Command("push"),
    )


def lacking(there: bytes, begins: Prefix, data: bytes) -> bytes | None:
    """What a file that holds `there` lacks of `data`; None where it went on in another way."""
    size_bytes, sha256 = begins
    if len(there) < size_bytes or digest.of_bytes(there[:size_bytes]) != sha256:
        return None
    more = there[size_bytes:]
    return data[len(more) :] if data.startswith(more) else None


def _append(path: Path, begins: Prefix, data: bytes) -> bytes:
    there = path.read_bytes()
    lacks = lacking(there, begins, data)
    if lacks is None:
        _refuse_changed(path, begins, there)
    if lacks:
        atomic.append(path, lacks)
    return there + lacks


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep others of ours who write it out. Raises FileNotFoundError, TemporaryError."""
    until = time.monotonic() + LOCK_S
    while (fd := _try_lock(path)) is None:
        if time.monotonic() > until:
            raise TemporaryError(
                _("{path}: somebody else is appending to it; try again", path=path)
            )
        time.sleep(0.05)
    try:
        yield
    finally:
        os.close(fd)


def _try_lock(path: Path) -> int | None:
    """None where somebody else has the lock, or has replaced the file since it was opened."""
    # Not O_CREAT: a queue that vanished must not come back.
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if lock.try_lock(fd) and os.path.samestat(os.fstat(fd), path.stat()):
            return fd
    except OSError as error:
        os.close(fd)
        if lock.is_none_here(error):
            return lock.try_stand_in(path)
        raise
    os.close(fd)
    return None
