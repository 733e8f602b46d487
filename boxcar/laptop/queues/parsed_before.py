"""The lines of large queue files as an earlier verb has parsed them: for who shows a run.

A file is known by all of its bytes, and only one of which each line is a cell is kept. It is a
cache: `status` has it; whoever decides something, or starts it, parses the file itself.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from boxcar.laptop.common import cache_file
from boxcar.laptop.queues.parsed import parsed
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.disk import digest
from boxcar.shared.files import codec
from boxcar.shared.files.queue_line import Queue

# Below this a file is parsed as fast as it is found here.
WORTH_LINES = 1000
_FIELDS = [field.name for field in dataclasses.fields(CellLine)]
_OWN, _OVERRIDES = _FIELDS.index("own"), _FIELDS.index("overrides")
_SHAPE = [_FIELDS, [field.name for field in dataclasses.fields(Own)]]


class ParsedBefore:
    """Of one run; `path` is read at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, list[list[Any]]] = {}
        self._used: dict[str, Queue] = {}
        cache_file.read(path, _SHAPE, self._kept.update)

    def parse(self, data: bytes) -> Queue:
        """As `parsed`."""
        sha256 = digest.of_bytes(data)
        if sha256 not in self._used:
            rows = self._kept.get(sha256)
            self._used[sha256] = parsed(data) if rows is None else _queue(rows)
        return self._used[sha256]

    def write(self) -> None:
        """For the next one, where there is something new: what was asked for and is worth it."""
        worth = {sha256: queue for sha256, queue in self._used.items() if _is_worth(queue)}
        if worth.keys() - self._kept.keys():
            rows = {
                sha256: self._kept[sha256] if sha256 in self._kept else _rows(queue)
                for sha256, queue in worth.items()
            }
            if cache_file.write(self._path, _SHAPE, rows):
                self._kept = rows


def _is_worth(queue: Queue) -> bool:
    return len(queue.lines) >= WORTH_LINES and not queue.bad and not queue.unfinished


def _rows(queue: Queue) -> list[list[Any]]:
    return [
        [
            *(line.index, line.number, line.name, line.cfg, line.task, line.epochs),
            codec.encode(line.own) if line.own != NOTHING_OWN else None,
            line.overrides,
            line.judged,
        ]
        for line in queue.cells
    ]


def _queue(rows: list[list[Any]]) -> Queue:
    for row in rows:
        own = row[_OWN]
        row[_OWN] = NOTHING_OWN if own is None else codec.decode(Own, own, "own")
        row[_OVERRIDES] = tuple(row[_OVERRIDES])
    return Queue(tuple(CellLine(*row) for row in rows))
