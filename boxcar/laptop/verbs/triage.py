"""`boxcar triage LOG`: why a training failed, by any log of it, without a run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.triage import (
    advice,
    failures_file,
    own_row_text,
    verdict_document,
    verdict_lines,
)
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.message import Command
from boxcar.shared.triage import log_end, own_rows
from boxcar.shared.triage.cause import Cause
from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.judge import judge

STDIN = "-"
MOST_BYTES = 8 * 1024 * 1024


def triage(
    log: str, *, rc: int | None = None, add: bool = False, as_json: bool = False, root: Path
) -> int:
    """Say why; 1 where nobody knows. `log` is a file, or `-` for stdin; `rc` its exit code, where
    it is known. `root` is the project's folder: signatures of its failures.yaml come first. With
    `add` one is written there from this log. Raises InputError for a file that is not there.
    """
    evidence = replace(_evidence(log), rcs=frozenset({rc} if rc is not None else ()))
    own = own_rows.match(failures_file.read(root), evidence.log, evidence.log_begins_at_line)
    cause = judge(replace(evidence, own=own))
    if add:
        return _add(root, cause)
    found = advice.of(cause.id, cause.course, reason=cause.reason if cause.is_known else "")
    if as_json:
        document = verdict_document.of(found, cause.quotes)
        show.json_document("triage", document | {"waits_s": list(cause.waits_s)})
    else:
        for line in verdict_lines.lines(found, cause.quotes):
            show.line(line)
    return 0 if cause.is_known else 1


def _add(root: Path, cause: Cause) -> int:
    """A row for this log's end, which a person then reads and changes."""
    if not cause.quotes:
        raise InputError("this log has no line by which its failure could be known again")
    path = root / failures_file.NAME
    before = path.read_bytes() if path.exists() else b""
    after = own_row_text.added(before.decode("utf-8"), cause)
    failures_file.parse(after.encode(), str(path))
    atomic.write_whole(path, after.encode())
    show.say(Sentence("triage.added", path=str(path)))
    show.verbatim(after[len(before) :].rstrip())
    return 0


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
