"""`boxcar triage LOG`: why a training failed, by any log of it, without a run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.laptop.common import show
from boxcar.laptop.triage import advice, verdict_lines
from boxcar.laptop.triage.advice import Advice
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import InputError
from boxcar.shared.message import Command
from boxcar.shared.triage import log_end
from boxcar.shared.triage.cause import Cause
from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.judge import judge

STDIN = "-"
MOST_BYTES = 8 * 1024 * 1024


def triage(log: str, *, rc: int | None = None, as_json: bool = False) -> int:
    """Say why; 1 where nobody knows. `log` is a file, or `-` for stdin; `rc` its exit code, where
    it is known. Raises InputError for a file that is not there.
    """
    cause = judge(replace(_evidence(log), rcs=frozenset({rc} if rc is not None else ())))
    found = advice.of(cause.id, cause.course)
    if as_json:
        show.json_document("triage", document(cause, found))
    else:
        for line in verdict_lines.lines(found, cause.quotes):
            show.line(line)
    return 0 if cause.is_known else 1


def document(cause: Cause, found: Advice) -> dict[str, Any]:
    return {
        "id": cause.id or None,
        "class": cause.course.value,
        "words": str(found.words),
        "evidence": [{"line": one.line, "text": one.text} for one in cause.quotes],
        "follows": str(Sentence(f"triage.follows.{cause.course.value}")),
        "todo": str(found.todo) if found.todo else None,
        "type": found.types.typed("invoke"),
        "ladder": [str(step) for step in found.ladder],
        "waits_s": list(cause.waits_s),
        "more": found.link,
    }


def _evidence(log: str) -> Evidence:
    if log == STDIN:
        data = log_end.of_stream(sys.stdin.buffer, MOST_BYTES)
        return Evidence(data.text, data.begins_at_line)
    path = Path(log)
    try:
        with path.open("rb") as file:
            data = log_end.of_file(file, 0, MOST_BYTES)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        text = f"{log}: there is no such log here; of a cell"
        raise InputError(text, Command("explain", ("--cell", path.name))) from None
    return Evidence(data.text, data.begins_at_line)
