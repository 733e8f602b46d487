"""The child that reads numbers, each within a second of CPU; `measure` starts it.

stdin: `{"tasks": [{"folder", "log", "log_begins_at_bytes", "is_growing", "metric": {...}}, ...]}`.
stdout, one JSON object a line: `{"at": 0}` before the first task, `{"value": 0.41}` or
`{"note": "..."}` after.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from boxcar.shared import bounded_child
from boxcar.shared.disk import regular_file
from boxcar.shared.metrics import read
from boxcar.shared.metrics.read import NoNumberError

CPU_S = 1.0
_MEMORY_BYTES = 2 * 1024**3


def main() -> None:
    bounded_child.limit_memory(_MEMORY_BYTES)
    for at, task in enumerate(json.load(sys.stdin)["tasks"]):
        print(json.dumps({"at": at}), flush=True)
        _limit_time()
        print(json.dumps(_answer(task)), flush=True)


def _answer(task: dict[str, Any]) -> dict[str, Any]:
    metric = task["metric"]
    try:
        return {"value": _number(task, metric)}
    except NoNumberError as error:
        return {"note": f"{_file(metric)}: {error}"}
    except FileNotFoundError:
        return {"note": f"{_file(metric)} is not there"}
    except OSError as error:
        return {"note": f"{_file(metric)} cannot be read: {error.strerror or error}"}
    except (MemoryError, RecursionError, ValueError, re.error) as error:
        return {"note": f"{_file(metric)} cannot be read: {str(error) or type(error).__name__}"}


def _file(metric: dict[str, Any]) -> str:
    return "the log" if metric["source"] == "log" else str(metric["of"])


def _number(task: dict[str, Any], metric: dict[str, Any]) -> float:
    if metric["source"] == "log":
        with regular_file.open_at(Path(task["log"])) as log:
            begins_at, pattern = task["log_begins_at_bytes"], re.compile(metric["of"])
            texts = read.in_log(log, begins_at, pattern, _limit_time, task["is_growing"])
            return read.chosen(texts, metric["best"])
    data = regular_file.read_left(Path(task["folder"]), metric["of"], read.MOST_FILE_BYTES)
    if metric["source"] == "csv":
        data = data[: data.rfind(b"\n") + 1] if task["is_growing"] else data
        return read.chosen(read.in_csv(data, metric["key"]), metric["best"])
    return read.in_json(data, metric["key"])


def _limit_time() -> None:
    """From now on a second."""
    bounded_child.limit_time(CPU_S)


if __name__ == "__main__":
    main()
