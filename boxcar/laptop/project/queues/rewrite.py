"""Cells to other queue files, with their comments; only for files that no agent has seen. And new
lines to the ends of several.

Killed between any two lines no cell is lost: a cell stands in two files before it leaves one, and
until that is finished every verb refuses the twin. The same command finishes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.project.queues.sync import complete
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, DamagedError, InputError
from boxcar.shared.files import queue_line
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class Blocks:
    """A queue file in parts: what stands at its top and end stays, a cell takes what is above it.

    Each block is the lines of a cell, its own the last of them.
    """

    head: bytes
    cells: dict[str, bytes]
    tail: bytes


def blocks(data: bytes) -> Blocks:
    """Takes a file without bad lines. A comment at the top is the file's, up to a blank line."""
    data = complete(data)
    names = {line.number: line.name for line in queue_line.parse_queue(data).cells}
    cells: dict[str, bytes] = {}
    head = above = b""
    for number, line in enumerate(_lines(data), start=1):
        above += line
        if number in names:
            if not cells:
                head, above = _split_head(above)
            cells[names[number]], above = above, b""
    return Blocks(head, cells, above) if cells else Blocks(above, {}, b"")


def rewritten(files: Mapping[str, bytes], queues: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """Each queue's file with these cells. They keep the order that they had. Pure."""
    parts = {name: blocks(data) for name, data in files.items()}
    lines = {cell: text for part in parts.values() for cell, text in part.cells.items()}
    wanted = {name: set(cells) for name, cells in queues.items()}
    return {
        name: parts[name].head
        + b"".join(text for cell, text in lines.items() if cell in wanted[name])
        + parts[name].tail
        for name in files
    }


def appended(data: bytes, lines: Sequence[str]) -> bytes:
    """A file with more lines at its end; what was there stays as it is, byte for byte."""
    end = b"" if not lines or not data or data.endswith(b"\n") else b"\n"
    return data + end + "".join(f"{line}\n" for line in lines).encode()


def longest_first(data: bytes, pushed: bytes | None, amounts: Mapping[str, float]) -> bytes:
    """A file whose cells below what was pushed stand in the order of their amounts. Pure."""
    data, there = complete(data), complete(pushed or b"")
    if not data.startswith(there):
        return data
    new = blocks(data[len(there) :])
    cells = sorted(new.cells, key=lambda cell: -amounts[cell])
    return there + new.head + b"".join(new.cells[cell] for cell in cells) + new.tail


def write_queue(root: Path, after: Mapping[Path, bytes]) -> None:
    """Replace the files by these contents, whole, all of them or as `finish` goes on.

    A file that is not there yet counts as an empty one.
    """
    record = {str(path): [_text(content(path)), _text(data)] for path, data in after.items()}
    atomic.make_folder(_record(root).parent)
    atomic.write_whole(_record(root), json.dumps(record).encode())
    finish(root)


def refuse_unfinished(root: Path) -> None:
    """Raise InputError where a rewrite was killed: cells stand in two queue files until it ends."""
    if _record(root).exists():
        raise InputError(
            _("a rewrite of the queue files was interrupted. To finish it"), Command("split")
        )


def finish(root: Path) -> bool:
    """Go on with a rewrite that was killed; whether there was one.

    Raises InputError where one of the files was edited since, and DamagedError.
    """
    try:
        record = json.loads(_record(root).read_bytes())
        changes = {Path(path): (_bytes(b), _bytes(a)) for path, (b, a) in record.items()}
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedError(
            _("{root}: not a record of a split: {error}", root=_record(root), error=error)
        ) from error
    _refuse_edited(root, changes)
    for path, (before, after) in changes.items():
        atomic.make_folder(path.parent)
        atomic.write_whole(path, _both(before, after))
    for path, (_before, after) in changes.items():
        atomic.write_whole(path, after)
    _record(root).unlink()
    atomic.sync_folder(_record(root).parent)
    return True


def content(path: Path) -> bytes:
    """What a queue file holds; nothing where it is not there."""
    return path.read_bytes() if path.exists() else b""


def _split_head(above: bytes) -> tuple[bytes, bytes]:
    """What stays at the top, and what belongs to the first cell, whose line is the last."""
    lines = _lines(above)
    blank = [number for number, line in enumerate(lines) if not line.strip()]
    end = blank[-1] + 1 if blank else len(lines) - 1
    return b"".join(lines[:end]), b"".join(lines[end:])


def _lines(data: bytes) -> list[bytes]:
    # Not splitlines, which takes a carriage return inside a comment for an end.
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def _both(before: bytes, after: bytes) -> bytes:
    """The new content, and below it the cells that leave."""
    staying = blocks(after).cells
    leaving = (text for cell, text in blocks(before).cells.items() if cell not in staying)
    return after + b"".join(leaving)


def _refuse_edited(root: Path, changes: Mapping[Path, tuple[bytes, bytes]]) -> None:
    edited = [
        str(path)
        for path, (before, after) in changes.items()
        if content(path) not in (before, _both(before, after), after)
    ]
    if edited:
        raise InputError(
            _(
                "a rewrite of queue files was interrupted, and {edited} was edited since. {root} "
                "has what it wanted to write. Fix the queue files, then remove that file",
                edited=", ".join(edited),
                root=_record(root),
            )
        )


def _record(root: Path) -> Path:
    return Home(root).split


def _text(data: bytes) -> str:
    return os.fsdecode(data)


def _bytes(text: str) -> bytes:
    return os.fsencode(text)
