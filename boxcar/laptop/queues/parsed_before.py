"""The lines of a large run's queue files as an earlier verb has parsed and judged them: for who
shows a run.

A file is known by all of its bytes, and only one of which each line is a cell is kept. What was
judged of all lines is known by everything that it was judged by, and kept only where nothing was
wrong. It is a cache: `status` has it; whoever decides something, or starts it, parses and judges
the files itself.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from boxcar.laptop.common.kept import by_column, cache_file
from boxcar.laptop.common.kept.late import Late
from boxcar.laptop.queues.parsed import parsed
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.disk import digest
from boxcar.shared.files import codec
from boxcar.shared.files.queue_line import Queue

# Below this all files are parsed as fast as they are found here.
WORTH_LINES = 1000
_FIELDS = [field.name for field in dataclasses.fields(CellLine)]
_SHAPE = [_FIELDS, [field.name for field in dataclasses.fields(Own)]]


class ParsedBefore:
    """Of one run; `path` is read at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The configs that the lines name, each once; and the lines, as a text that is read late.
        self._kept: dict[str, tuple[list[str], str]] = {}
        self._used: dict[str, Queue] = {}
        self._sound, self._is_new = "", False
        cache_file.read(path, _SHAPE, self._take)

    def _take(self, kept: Any) -> None:
        self._sound, self._kept = kept

    def parse(self, data: bytes) -> Queue:
        """As `parsed`; the lines of one that is known are made when somebody asks for them."""
        sha256 = digest.of_bytes(data)
        if sha256 not in self._used:
            kept = self._kept.get(sha256)
            self._used[sha256] = parsed(data) if kept is None else _queue(kept[1])
            self._is_new = self._is_new or kept is None
        return self._used[sha256]

    def configs(self, sha256s: Iterable[str]) -> list[str]:
        """Those that the lines of these files name, which were parsed here, each once."""
        found = set[str]()
        for sha256 in sha256s:
            kept = self._kept.get(sha256)
            found.update(kept[0] if kept else _configs(self._used[sha256]))
        return sorted(found)

    def is_sound(self, known_by: str) -> bool:
        """Whether nothing was wrong with all lines, as judged by all that has this digest."""
        return known_by == self._sound

    def note_sound(self, known_by: str) -> None:
        self._is_new = self._is_new or known_by != self._sound
        self._sound = known_by

    def write(self) -> None:
        """For the next one, where there is something new: what was asked for and is worth it."""
        if not self._is_new:
            return
        good = {
            sha256: queue
            for sha256, queue in self._used.items()
            if sha256 in self._kept or not (queue.bad or queue.unfinished)
        }
        if sum(len(queue.lines) for queue in good.values()) < WORTH_LINES:
            return
        kept = {
            sha256: self._kept.get(sha256) or (_configs(queue), json.dumps(_columns(queue)))
            for sha256, queue in good.items()
        }
        if cache_file.write(self._path, _SHAPE, [self._sound, kept]):
            self._kept, self._is_new = kept, False


def _columns(queue: Queue) -> by_column.Columns:
    found = dict(zip(_FIELDS, by_column.fields(queue.cells, _FIELDS), strict=True))
    own = [None if one is NOTHING_OWN else codec.encode(one) for one in found["own"]]
    return by_column.of([*(found | {"own": own}).values()])


def _configs(queue: Queue) -> list[str]:
    return sorted({line.cfg for line in queue.cells if line.has_config})


def _queue(kept: str) -> Queue:
    return Queue(Late(lambda: [*by_column.made(json.loads(kept), _line)]))


def _line(*fields: Any) -> CellLine:
    index, number, name, cfg, task, epochs, own, overrides, judged = fields
    said = NOTHING_OWN if own is None else codec.decode(Own, own, name)
    return CellLine(index, number, name, cfg, task, epochs, said, overrides, judged)
