"""The numbers that a job names of what a cell left: taken in a child, by box and laptop alike.

A person's expression may need longer than the sun shines, so each number gets a second of CPU. What
cannot be had is no number, with a note why; nothing here fails a cell.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import Number
from boxcar.shared.record import dataclass

MODULE = "boxcar.shared.metrics"
LATE = "took longer than 1 s of CPU, so it was not taken"
# A child that was stopped or hangs on a disk.
WALL_S = 60.0
# What an interpreter may need to start; nothing else, it might be a secret.
_KEPT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")
# Where boxcar is imported from: a folder, or the agent's archive.
_HOME = str(Path(__file__).parents[3])


@dataclass(frozen=True)
class Left:
    """What a cell left: `folder` has the files, `log` is the log, the last attempt's part of it
    from `log_begins_at_bytes` on.
    """

    folder: Path
    log: Path
    log_begins_at_bytes: int = 0


def take(metrics: Sequence[Metric], cells: Sequence[Left]) -> list[tuple[Number, ...]]:
    """The numbers of each cell, in the order of `metrics`. Raises nothing."""
    tasks = [_task(metric, left) for left in cells for metric in metrics]
    answers = _answers(tasks) if tasks else []
    names = [metric.name for metric in metrics]
    return [
        tuple(_number(name, answer) for name, answer in zip(names, part, strict=True))
        for part in _parts(answers, len(cells), len(metrics))
    ]


def _parts(answers: list[dict[str, Any]], count: int, size: int) -> Iterator[list[dict[str, Any]]]:
    return (answers[at * size : (at + 1) * size] for at in range(count))


def _task(metric: Metric, left: Left) -> dict[str, Any]:
    places = {"folder": str(left.folder.absolute()), "log": str(left.log.absolute())}
    about = {"source": metric.source, "of": metric.of, "key": metric.key, "best": metric.best}
    return {**places, "log_begins_at_bytes": left.log_begins_at_bytes, "metric": about}


def _number(name: str, answer: dict[str, Any]) -> Number:
    value = answer.get("value")
    if isinstance(value, (int, float)):
        return Number(name, float(value))
    return Number(name, None, str(answer.get("note", "the child gave no answer")))


def _answers(tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each task; a new child goes on behind a task that ended one."""
    found: list[dict[str, Any]] = []
    while len(found) < len(tasks):
        said, is_at, why = _ask_child(tasks[len(found) :])
        found += said
        if len(found) < len(tasks) and is_at:
            found.append({"note": why})
        elif not said:
            found += [{"note": why}] * (len(tasks) - len(found))
    return found


def _ask_child(tasks: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool, str]:
    """What it answered, whether it was at a further task when it ended, and how it ended."""
    try:
        rc, lines = _told(json.dumps({"tasks": tasks}).encode())
    except OSError as error:
        return [], False, f"could not be read here: {error.strerror}"
    answers = [line for line in lines if "value" in line or "note" in line]
    is_at = sum("at" in line for line in lines) > len(answers)
    why = LATE if rc in (-signal.SIGPROF, None) else f"ended its reader with code {rc}"
    return answers, is_at, why


def _told(question: bytes) -> tuple[int | None, list[dict[str, Any]]]:
    """How a child ended that was asked this, and the lines that it said."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as told:
        asked.write(question)
        asked.seek(0)
        rc = _run(asked, told)
        told.seek(0)
        return rc, [_line(line) for line in told.read().splitlines()]


def _run(asked: Any, told: Any) -> int | None:
    """The exit code of the child; None for one that did not end in time."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", MODULE],
        cwd="/",
        env=_environment(),
        stdin=asked,
        stdout=told,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(WALL_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONPATH": _HOME, "PYTHONDONTWRITEBYTECODE": "1"}


def _line(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def of_named(numbers: Sequence[Number]) -> dict[str, float | None]:
    """By name, for tables and events."""
    return {number.name: number.value for number in numbers}


def notes(numbers: Sequence[Number]) -> dict[str, str]:
    """Why some are none, by name."""
    return {number.name: number.note for number in numbers if number.value is None}
