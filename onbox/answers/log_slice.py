"""A slice of a log: a cell's, or what a queue's agent itself printed."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any, BinaryIO

from boxcar.shared.disk import lock
from boxcar.shared.errors import InputError
from onbox.answers.regular_file import open_plain
from onbox.answers.request import Request

MOST_BYTES = 8 * 1024 * 1024


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """A part of the log of `cell`, or of the agent of `queue`.

    With an `offset` what stands behind it, else the last `lines` complete lines with what is
    unfinished after them; `most_bytes` of it, and 8 MiB at most. `offset` in the answer is where
    the next slice begins; a log that is shorter than the offset was replaced, and begins anew.
    `is_held`: somebody lives who may write to it.
    """
    asked = Request(request)
    most_bytes = min(asked.count("most_bytes"), MOST_BYTES)
    file = _open(asked)
    data, end, size_bytes = b"", 0, 0
    if file is not None:
        with file:
            size_bytes = os.fstat(file.fileno()).st_size
            if request.get("offset") is None:
                data, end = last_lines(file, size_bytes, asked.count("lines"), most_bytes)
            else:
                data, end = since(file, size_bytes, asked.count("offset"), most_bytes)
    return {
        "is_there": file is not None,
        "data": base64.b64encode(data).decode(),
        "offset": end,
        "size_bytes": size_bytes,
        "is_held": lock.is_held(_lock(asked)),
    }


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


def _open(asked: Request) -> BinaryIO | None:
    """The scratch has a cell's log while it runs, and the durable tier once it was published."""
    tier, scratch = asked.tier, asked.scratch
    if not _is_of_cell(asked):
        return open_plain(scratch.root, scratch.agent_log(asked.queue).name)
    name = f"cells/{asked.cell}/{asked.cell}.log"
    return open_plain(scratch.root, name) or open_plain(tier.root, name)


def _lock(asked: Request) -> Path:
    return asked.scratch.log(asked.cell) if _is_of_cell(asked) else asked.tier.lock(asked.queue)


def _is_of_cell(asked: Request) -> bool:
    is_of_cell = "cell" in asked.words
    if is_of_cell == ("queue" in asked.words):
        raise InputError("expected the name of a cell or of a queue, and not both")
    return is_of_cell
