"""A slice of a log: a cell's, or what a queue's agent itself printed."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import BinaryIO

from boxcar.shared import paths
from boxcar.shared.disk import lock
from boxcar.shared.disk.regular_file import open_plain
from boxcar.shared.errors import BoxcarError
from boxcar.shared.known_secrets import KnownSecrets
from boxcar.shared.triage.log_lines import without_colours
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers.wait import hold_until
from onbox.machine import credentials

MOST_BYTES = 8 * 1024 * 1024
_CUT_LINE = re.compile(rb"[^\r\n]*[\r\n]?")


def answer(question: run_asks.ReadLog, run: RunOnBox) -> run_asks.LogSlice:
    """`most_bytes` of it, and 8 MiB at most.

    A log that is shorter than the offset was replaced, and begins anew.
    """
    most_bytes = min(question.most_bytes, MOST_BYTES)
    if question.wait_s:
        hold_until(lambda: _has_grown(question, run), question.wait_s)
    file = _open(question, run)
    data, end, size_bytes = b"", 0, 0
    if file is not None:
        with file:
            size_bytes = os.fstat(file.fileno()).st_size
            if question.offset is None:
                data, end = last_lines(file, size_bytes, question.lines, most_bytes)
            else:
                data, end = since(file, size_bytes, question.offset, most_bytes)
    is_clean = False
    if question.credentials:
        if len(data) == most_bytes < size_bytes:
            data = data[_CUT_LINE.match(data).end() :]  # type: ignore[union-attr]
        data, is_clean = without_secrets(data, question.credentials)
    is_held = lock.is_held(_lock(question, run))
    return run_asks.LogSlice(file is not None, data, end, size_bytes, is_held, is_clean)


def without_secrets(data: bytes, file: str) -> tuple[bytes, bool]:
    """The text without the values in the box's file of credentials; whether it could be read.
    Libraries paint the digits of a token: a colour may begin inside a value.
    """
    known, path, is_known = KnownSecrets(), paths.on_box(file), False
    with contextlib.suppress(BoxcarError, OSError):
        known = KnownSecrets(credentials.secrets_of(credentials.read(path)))
        is_known = path.is_file()
    text = without_colours(data.decode(errors="surrogateescape"))
    return known.left_out_of(text).encode(errors="surrogateescape"), is_known


def last_lines(file: BinaryIO, size_bytes: int, lines: int, most_bytes: int) -> tuple[bytes, int]:
    """The last lines, and the offset of their end."""
    file.seek(max(0, size_bytes - most_bytes))
    data = file.read(most_bytes)
    return b"\n".join(data.split(b"\n")[-lines - 1 :]), file.tell()


def since(file: BinaryIO, size_bytes: int, offset: int, most_bytes: int) -> tuple[bytes, int]:
    """What stands behind the offset, and the offset of its end."""
    file.seek(offset if offset <= size_bytes else 0)
    data = file.read(most_bytes)
    return data, file.tell()


def _open(question: run_asks.ReadLog, run: RunOnBox) -> BinaryIO | None:
    """The scratch has a cell's log while it runs, and the durable tier once it was published."""
    if question.queue is not None:
        own = open_plain(run.scratch.root, run.scratch.agent_log(question.queue).name)
        # On a cluster the batch script keeps it where every node sees it.
        return own or open_plain(run.tier.root, f"slurm/{question.queue}.log")
    name = f"cells/{question.cell}/{question.cell}.log"
    return open_plain(run.scratch.root, name) or open_plain(run.tier.root, name)


def _has_grown(question: run_asks.ReadLog, run: RunOnBox) -> bool:
    """Or was replaced, or is at its end."""
    file = _open(question, run)
    if file is None:
        return True
    with file:
        size_bytes = os.fstat(file.fileno()).st_size
    return size_bytes != question.offset or not lock.is_held(_lock(question, run))


def _lock(question: run_asks.ReadLog, run: RunOnBox) -> Path:
    if question.queue is not None:
        return run.tier.lock(question.queue)
    return run.scratch.log(str(question.cell))
