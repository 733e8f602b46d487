"""The child that reads numbers, each within a second of CPU; `measure` and `series` start it.

stdin: `{"tasks": [{"folder", "log", "log_begins_at_bytes", "is_growing", "metric": {...},
"is_whole"}, ...]}`; with `is_whole` the series is asked for, and with `file` in the place of
`metric` those of all numbers of a file with results.
stdout, one JSON object a line: `{"at": 0}` before the first task, after it
`{"value": 0.41, "where": "step 3: val loss 0.41"}`, `{"series": {"loss": [[step, at, value]]}}` or
`{"note": "..."}`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boxcar.shared import event_words
from boxcar.shared.disk import regular_file
from boxcar.shared.errors import reason_of
from boxcar.shared.files.plan import CSV, LOG
from boxcar.shared.metrics import read, records, result_files
from boxcar.shared.metrics.read import Match, NoNumberError
from boxcar.shared.metrics.records import Point, thin
from boxcar.shared.process import bounded_child
from boxcar.shared.sentence import _

# Of a person's expression for each window of a log; of a file that is read as a whole.
CPU_S, FILE_CPU_S = 1.0, 20.0
_MEMORY_BYTES = 2 * 1024**3


def main() -> None:
    bounded_child.limit_memory(_MEMORY_BYTES)
    for at, task in enumerate(json.load(sys.stdin)["tasks"]):
        print(json.dumps({"at": at}), flush=True)
        _limit_time()
        print(json.dumps(_answer(task)), flush=True)


def _answer(task: dict[str, Any]) -> dict[str, Any]:
    of = _of(task)
    try:
        return _found(task)
    except NoNumberError as error:
        return _note(_("{head}: {text}", head=of, text=error))
    except FileNotFoundError:
        return _note(_("{file} is not there", file=of))
    except (OSError, MemoryError, RecursionError, ValueError, re.error) as error:
        why = reason_of(error) or type(error).__name__
        return _note(_("{path} cannot be read: {why}", path=of, why=why))


def _note(text: str) -> dict[str, Any]:
    return {"note": text, event_words.SENTENCES: event_words.sentences_in(text)}


def _of(task: dict[str, Any]) -> str:
    if metric := task.get("metric"):
        return _("the log") if metric["source"] == LOG else str(metric["of"])
    return str(task["file"])


def _found(task: dict[str, Any]) -> dict[str, Any]:
    if metric := task.get("metric"):
        if task.get("is_whole"):
            return {"series": {metric["name"]: thin(_series(task, metric))}}
        number, match = read.chosen(_matches(task, metric), metric["best"])
        return {"value": number, "where": match.where}
    bounded_child.limit_time(FILE_CPU_S)
    with regular_file.open_left(Path(task["folder"]), task["file"]) as file:
        found = result_files.series_of_file(task["file"], file)
    return {"series": {key: thin(points) for key, points in found.items()}}


def _matches(task: dict[str, Any], metric: dict[str, Any]) -> Iterator[Match]:
    if metric["source"] == LOG:
        with regular_file.open_at(Path(task["log"])) as log:
            begins_at, pattern = task["log_begins_at_bytes"], re.compile(metric["of"])
            yield from read.in_log(log, begins_at, pattern, _limit_time, task["is_growing"])
        return
    data = _data(task, metric)
    if metric["source"] == CSV:
        data = data[: data.rfind(b"\n") + 1] if task["is_growing"] else data
        yield from read.in_csv(data, metric["key"])
    else:
        yield from read.in_json(data, metric["key"])


def _series(task: dict[str, Any], metric: dict[str, Any]) -> list[Point]:
    """A log tells no steps and no times."""
    if metric["source"] == LOG:
        numbers = (read.any_number(match.text) for match in _matches(task, metric))
        return [(None, None, number) for number in numbers if number is not None]
    data = _data(task, metric)
    rows = records.of_csv(data) if metric["source"] == CSV else records.of_json(data)
    return records.points(rows, metric["key"])


def _data(task: dict[str, Any], metric: dict[str, Any]) -> bytes:
    return regular_file.read_left(Path(task["folder"]), metric["of"], read.MOST_FILE_BYTES)


def _limit_time() -> None:
    """From now on a second."""
    bounded_child.limit_time(CPU_S)


if __name__ == "__main__":
    main()
