"""`boxcar triage LOG`: why a training failed, by any log of it, without a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.triage import advice, failures_file, log_file
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _
from boxcar.shared.triage import own_rows
from boxcar.shared.triage.evidence import Cause, Evidence
from boxcar.shared.triage.judge import judge


def triage(
    log: str, *, rc: int | None = None, add: bool = False, as_json: bool = False, root: Path
) -> int:
    """Say why; 1 where nobody knows. `log` is a file, or `-` for stdin; `rc` its exit code, where
    it is known. `root` is the project's folder: signatures of its failures.yaml come first. With
    `add` one is written there from this log. Raises InputError for what is no log.
    """
    tail = log_file.read_log_file(log)
    if not tail.text.strip() and rc is None:
        raise InputError(_("{log} is empty; it does not say how the training ended", log=log))
    rcs = frozenset({rc} if rc is not None else ())
    evidence = Evidence(tail.text, tail.begins_at_line, rcs)
    own = own_rows.match(
        failures_file.read_failures_file(root), evidence.log, evidence.log_begins_at_line
    )
    cause = judge(replace(evidence, own=own))
    if add:
        return _add(root, cause)
    found = advice.advice_of(cause.id, cause.course, reason=cause.reason if cause.is_known else "")
    if as_json:
        document = advice.verdict_document(found, cause.quotes)
        show.json_document("triage", document | {"waits_s": list(cause.waits_s)})
    else:
        for line in (*advice.verdict_lines(found, cause.quotes), *advice.types_line(found)):
            show.line(line)
    return 0 if cause.is_known else 1


def _add(root: Path, cause: Cause) -> int:
    """A row for this log's end, which a person then reads and changes."""
    if not cause.quotes:
        raise InputError(_("this log has no line that identifies the failure"))
    path = root / failures_file.NAME
    before = path.read_bytes() if path.exists() else b""
    after = advice.added_row(before.decode("utf-8"), cause)
    failures_file.parse(after.encode(), str(path))
    atomic.write_whole(path, after.encode())
    show.say(_("{path}: a row was added; read it, then push", path=str(path)))
    show.verbatim(after[len(before) :].rstrip())
    return 0
