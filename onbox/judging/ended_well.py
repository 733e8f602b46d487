"""A training that had ended when a signal came: every artifact is there and loads. A success.

A signal alone says nothing against what was written before it. But artifacts such as `best.pth` are
there long before a training's end, so whatever tells of work that was left keeps it a failure; and
where nothing tells, one that can go on from a checkpoint goes on.
"""

from __future__ import annotations

from dataclasses import replace

from boxcar.shared import load_child
from boxcar.shared.cell import said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import progress, release
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.to_load import said_as, to_load
from boxcar.shared.triage import abort_at_exit, exit_signals
from boxcar.shared.triage.course import Course
from boxcar.shared.triage.had_ended import had_ended
from onbox.cell import left_artifacts, log_tail, progress_tail
from onbox.cell.left_artifacts import LeftArtifacts
from onbox.judging.verdict import Action, Verdict
from onbox.place import Place

SIGNAL_AT_ITS_END = (
    "it was ended by a signal after it had written everything: its artifacts load, and nothing "
    "tells of work that was left"
)
ABORTED_AT_EXIT = (
    "torch's own threads aborted it after its script's end (terminate called): a fault of torch, "
    "and its artifacts load"
)
# What torchrun's 1 was: a rank that a signal ended.
_OF_RANKS = ("137-N", "TERM", "SEGV", "ABRT", "BUS")
# Of these the signal is the least.
_NOT_OF = (Course.OTHER_BOX, Course.STOP_QUEUE)


def is_worth_a_look(done: Done | None, verdict: Verdict) -> bool:
    """Whether a signal ended it; the load costs seconds."""
    return (
        done is not None
        and (exit_signals.is_signal(done.rc) or verdict.failure in _OF_RANKS)
        and verdict.action in (Action.RETRY, Action.FAIL, Action.PREEMPTED)
        and verdict.course not in _NOT_OF
        and done.over_time_s is None
        and done.ranks_formed is None
    )


def instead(place: Place, cell: CellLine, done: Done, verdict: Verdict) -> Verdict:
    """A success where it had ended, else the verdict as it is. Raises nothing."""
    try:
        found = left_artifacts.look(place, cell.name)
        has_all = bool(found.by_path) and not (found.missing or found.problem)
        reason = _why_it_had_ended(place, cell, done, found) if has_all else ""
        if reason and _loads(place, cell.name, found):
            return Verdict(Action.SUCCEED, reason=reason)
    except (BoxcarError, OSError):
        pass  # what cannot be looked at is no success
    return verdict


def _why_it_had_ended(place: Place, cell: CellLine, done: Done, found: LeftArtifacts) -> str:
    """The warning of a success; '' where it is not known that it had."""
    log = log_tail.read(place.scratch, cell.name).text
    if abort_at_exit.is_all(log):
        return ABORTED_AT_EXIT
    told = had_ended(progress_tail.last(found.out), said.epochs(place.plan, cell), log)
    # With a checkpoint to go on from, it costs little to let it go on.
    may_go_on = terms.of_cell(place.plan, cell.name).resume is not None
    may_be = told is None and not (may_go_on or done.was_told_to_stop)
    return SIGNAL_AT_ITS_END if may_be or (told and _is_newer_than_report(found)) else ""


def _is_newer_than_report(found: LeftArtifacts) -> bool:
    """The last epoch may be reported at its beginning; what is written at its end comes later."""
    reported_ns = (found.out / progress.FILE).lstat().st_mtime_ns
    return max(path.lstat().st_mtime_ns for path in found.files.values()) >= reported_ns


def _loads(place: Place, cell: str, found: LeftArtifacts) -> bool:
    artifacts = terms.of_cell(place.plan, cell).artifacts
    made = replace(
        _NOTHING_PUBLISHED,
        files=tuple(FileRecord(n, path.stat().st_size, "") for n, path in found.files.items()),
        matches=found.matches,
    )
    files = to_load(artifacts, made)
    child = load_child.Child(
        place.plan.training_python, place.release, str(place.release / place.training_zip)
    )
    code = said.import_paths(place.plan, cell, str(place.release / release.CODE))
    manner = load_child.Manner(code=code, said_as=said_as(artifacts, made))
    loaded = load_child.load(child, found.out, files, manner)
    return bool(files) and all(finding.is_good for finding in loaded.findings.values())


_NOTHING_PUBLISHED = Manifest("", "", "", "", "", 0, "", "", 0, "", "", ())
