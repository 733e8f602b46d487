"""The queue file: one cell a line, written by people; `shared/cell/cell_line.py` reads one line.

Complete lines only: a last line without its line feed is still being typed, until the file has
stood still (`with_last_line`). Blank lines and lines that begin with `#` do not count; a cell that
never ran is dropped by a `#` before its line. CRLF and a byte order mark are taken as what they
mean.
"""

from __future__ import annotations

import math
import sys
import time
from functools import cached_property
from io import BytesIO
from pathlib import Path

from boxcar.shared.cell import cell_line
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import same_name_key
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, said_by

_MARK = b"\xef\xbb\xbf"
# 100,000 lines of 300 bytes.
LARGEST_FILE_BYTES = 32 * 1024 * 1024
# Who types a line goes on sooner; many editors never write the last line feed.
LAST_LINE_S = 10.0


@dataclass(frozen=True)
class BadLine:
    """A complete, non-comment line that is no cell. It keeps its index; it is never run."""

    index: int
    number: int
    reason: str


@dataclass(frozen=True)
class Queue:
    """What a queue file says. `unfinished` is a last line that has no line feed yet and is no
    remark, or ''.
    """

    lines: tuple[CellLine | BadLine, ...] = ()
    unfinished: str = ""

    @cached_property
    def cells(self) -> list[CellLine]:
        return [one for one in self.lines if isinstance(one, CellLine)]

    @cached_property
    def bad(self) -> list[BadLine]:
        return [one for one in self.lines if isinstance(one, BadLine)]


def parse_queue(data: bytes) -> Queue:
    """Read a queue file's bytes. Never raises: what is wrong with a line stands in its BadLine."""
    lines: list[CellLine | BadLine] = []
    first_use: dict[str, CellLine] = {}
    number, start = 0, _marks(data)
    end = data.rfind(b"\n", 0, LARGEST_FILE_BYTES) + 1
    for raw in BytesIO(data[start:end]):  # one at a time: there may be millions
        number += 1
        if raw.strip() and not _is_comment(raw):
            line = raw[:-1].rstrip(b"\r")
            lines.append(_parse_line(line, len(lines), number, first_use))
    if len(data) > LARGEST_FILE_BYTES:
        reason = _(
            "the queue file is larger than {n} bytes; the rest is not read", n=LARGEST_FILE_BYTES
        )
        lines.append(BadLine(len(lines), number + 1, reason))
    rest = data[max(start, end) : LARGEST_FILE_BYTES][: cell_line.LONGEST_BYTES]
    text = rest.decode("utf-8", "replace").strip()
    return Queue(tuple(lines), "" if text.startswith("#") else text)


def with_last_line(data: bytes, still_s: float = math.inf) -> bytes:
    """What counts of a file that has stood still for so long: then also a last line that has no
    line feed.
    """
    is_complete = not data or data.endswith(b"\n")
    return data if is_complete or still_s < LAST_LINE_S else data + b"\n"


def what_counts(path: Path) -> bytes:
    """Of the file as it lies there now. Raises OSError."""
    with path.open("rb") as file:
        data = file.read()
    return with_last_line(data, time.time() - path.stat().st_mtime)


def commented_out(data: bytes) -> tuple[CellLine, ...]:
    """The lines that would be cells without the `#` before them. Their index is -1.

    A remark may read like one: only who knows the cell from elsewhere can tell.
    """
    complete = normalise(data[:LARGEST_FILE_BYTES]).rpartition(b"\n")[0]
    found = (
        _parse_line(_uncommented(raw), -1, number, {})
        for number, raw in enumerate(complete.split(b"\n"), start=1)
        if _is_comment(raw) and _may_be_a_cell(raw)
    )
    return tuple(one for one in found if isinstance(one, CellLine))


def is_commented_out(before: bytes, after: bytes) -> bool:
    """Whether `after` has all lines of `before`, some of them with a `#`, and maybe more below.

    Both as `normalise` makes them, and complete.
    """
    old, new = before.split(b"\n")[:-1], after.split(b"\n")[:-1]
    return len(old) <= len(new) and all(
        then == now or (_is_comment(now) and _uncommented(now) == then.strip())
        for then, now in zip(old, new, strict=False)
    )


def normalise(data: bytes) -> bytes:
    """Without byte order mark, with LF line ends: how a queue stands on the durable tier."""
    text = data[_marks(data) :]
    if b"\r" not in text:  # as nearly all are
        return text
    *lines, rest = text.split(b"\n")
    return b"".join(line.rstrip(b"\r") + b"\n" for line in lines) + rest


def _marks(data: bytes) -> int:
    """How long all byte order marks are: a file that went through two editors has two."""
    end = 0
    while data.startswith(_MARK, end):
        end += len(_MARK)
    return end


def _is_comment(raw: bytes) -> bool:
    return raw.lstrip().startswith(b"#")


def _uncommented(raw: bytes) -> bytes:
    return raw.lstrip().lstrip(b"#").strip()


def _may_be_a_cell(raw: bytes) -> bool:
    """Cheap, because a file may have a hundred thousand comments."""
    words = _uncommented(raw).split()
    return len(words) in (2, 3) or any(mark in raw for mark in (b"=", b" -", b'"', b"'"))


def _parse_line(
    raw: bytes, index: int, number: int, first_use: dict[str, CellLine]
) -> CellLine | BadLine:
    try:
        parsed = cell_line.parse(raw, index, number)
        key = sys.intern(same_name_key(parsed.name))  # nearly always the name itself
        if key in first_use:
            raise ValueError(_twin(parsed, first_use[key]))
    except ValueError as error:
        return BadLine(index, number, said_by(error))
    first_use[key] = parsed
    return parsed


def _twin(line: CellLine, first: CellLine) -> str:
    if line.name == first.name:
        return _(
            "cell {name!r} is already on line {line}, and names must be unique. Name this one "
            "with name=... after task and epochs",
            name=line.name,
            line=first.number,
        )
    return _(
        "cell {name!r} and {other!r} on line {line} would share a folder on some file systems. "
        "Name this one with name=... after task and epochs",
        name=line.name,
        other=first.name,
        line=first.number,
    )
