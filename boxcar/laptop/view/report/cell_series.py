"""The whole series of each number of a cell, derived from what was pulled: its log, its progress,
CSV, JSON Lines and TensorBoard's files. A child reads them; nothing is kept.

Curves are shown and proven by nothing but the digests of these files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.shared.files import progress
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import LOG, Metric
from boxcar.shared.metrics import measure, result_files
from boxcar.shared.metrics.measure import Left
from boxcar.shared.metrics.records import NOT_METRICS, Point, thin
from boxcar.shared.record import dataclass

# Of the files that nobody named; a job names what it wants.
MOST_KEYS, MOST_FILES = 20, 40
# Cells for each child, which has a minute.
_AT_ONCE = 8
_DIGITS = re.compile(r"(\d+)")

Series = dict[str, list[Point]]


@dataclass(frozen=True)
class Pulled:
    """A cell's folder among the results, its manifest, and what its job's `metrics` meant."""

    folder: Path
    manifest: Manifest
    metrics: tuple[Metric, ...] = ()


def of_cells(cells: Sequence[Pulled]) -> Iterator[Series]:
    """By name or key: what the script reported, what the job names, then what files with results
    hold. Raises nothing; what cannot be read has no series.
    """
    for at in range(0, len(cells), _AT_ONCE):
        asked = [_tasks(cell) for cell in cells[at : at + _AT_ONCE]]
        answers = iter(measure.answers([task for tasks in asked for task in tasks]))
        yield from (_of_cell([(task, next(answers)) for task in tasks]) for tasks in asked)


def sources(cell: Pulled) -> list[FileRecord]:
    """The files of the manifest that its series are read from."""
    log = f"{cell.manifest.cell}.log"
    named = {log if metric.source == LOG else metric.of for metric in cell.metrics}
    wanted = {*named, *_result_files(cell.manifest)}
    return [file for file in cell.manifest.all_files if file.path in wanted]


def without(cell: Pulled, carried: Collection[str]) -> Pulled:
    """As if these carried files had never come."""
    kept = tuple(file for file in cell.manifest.carried.files if file.path not in carried)
    left = replace(cell.manifest.carried, files=kept)
    return replace(cell, manifest=replace(cell.manifest, carried=left))


def _tasks(cell: Pulled) -> list[dict[str, Any]]:
    log = cell.folder / f"{cell.manifest.cell}.log"
    left = Left(cell.folder, log, cell.manifest.log_begins_at_bytes)
    named = [measure.task_of(m, left) for m in cell.metrics if not measure.is_of_ours(m)]
    folder = str(cell.folder.absolute())
    files = [{"folder": folder, "file": path} for path in _result_files(cell.manifest)]
    return [*({**task, "is_whole": True} for task in named), *files]


def _result_files(made: Manifest) -> list[str]:
    """The script's own report first, then the surest; what is numbered in this order."""
    found = [file.path for file in made.all_files if result_files.may_be_one(file.path)]

    def order(path: str) -> tuple[bool, int, list[str]]:
        spelled = [each.zfill(12) if each.isdigit() else each for each in _DIGITS.split(path)]
        return path != progress.FILE, result_files.place(path), spelled

    return sorted(found, key=order)[:MOST_FILES]


def _of_cell(answers: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Series:
    named: Series = {}
    by_source: dict[str, Series] = {}
    for task, answer in answers:
        found = {key: list(map(_point, points)) for key, points in answer.get("series", {}).items()}
        if "metric" in task:
            named |= found
            continue
        of_source = by_source.setdefault(_source(task["file"]), {})
        for key in (key for key in found if key not in NOT_METRICS):
            of_source.setdefault(key, []).extend(found[key])
    told = by_source.pop(progress.FILE, {})
    return {
        key: thin(without_undone(points))
        for key, points in {**told, **named, **_of_files(by_source, {*told, *named})}.items()
        if points
    }


def _of_files(by_source: Mapping[str, Series], taken: set[str]) -> Series:
    """Of one key in two files the surer one; TensorBoard's folders are two things, such as train
    and val.
    """
    found: Series = {}
    for source, series in by_source.items():
        for key, points in series.items():
            is_twice = sum(key in other for other in by_source.values()) > 1
            _, is_of_events, folder = source.rpartition("/")
            name = f"{folder}/{key}" if is_twice and is_of_events and folder else key
            if len(points) > 1 and not {name, key} & taken and len(found) < MOST_KEYS:
                found.setdefault(name, points)
    return found


def _source(path: str) -> str:
    """What is one thing over a resume, which begins another file of the same name: version_1/
    metrics.csv goes on where version_0 ended, and so does a further file of events in its folder.
    """
    folder, _, name = path.rpartition("/")
    return f"/{folder}" if result_files.is_of_events(path) else name


def _point(found: Sequence[float | None]) -> Point:
    step, at, value = found
    return step, at, float(value or 0.0)


def without_undone(points: Iterable[Point]) -> list[Point]:
    """A resume goes back and says its steps again: then what was said last counts."""
    kept: list[Point] = []
    for point in points:
        step = point[0]
        while step is not None and kept and kept[-1][0] is not None and kept[-1][0] > step:
            kept.pop()
        kept.append(point)
    return kept


def times(points: Sequence[Point], began_s: float, ended_s: float) -> Iterator[float]:
    """Each one's own, else that of the one before; where none has one, spread over the training."""
    if any(at is not None for _, at, _ in points):
        before_s = began_s
        for _, at, _ in points:
            before_s = before_s if at is None else at
            yield before_s
        return
    for number in range(1, len(points) + 1):
        yield began_s + (ended_s - began_s) * number / len(points)
