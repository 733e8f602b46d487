"""A training that had ended when a signal came: every artifact is there and loads. A success.

A signal alone says nothing against what was written before it. But artifacts such as `best.pth` are
there long before a training's end, so an end is proven, or it is none: see proof_of_end.py.
"""

from __future__ import annotations

from dataclasses import replace

from boxcar.shared import timestamp
from boxcar.shared.artifacts.to_load import said_as, to_load
from boxcar.shared.cell import said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import attempt, progress, release
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.metrics import measure
from boxcar.shared.process import load_child
from boxcar.shared.triage import exit_signals, had_ended
from boxcar.shared.triage.evidence import Course
from onbox.judging import log_tail, progress_tail, proof_of_end
from onbox.judging.proof_of_end import Left
from onbox.judging.verdict import Action, Verdict
from onbox.machine.place import Place
from onbox.result import left_artifacts
from onbox.result.left_artifacts import LeftArtifacts

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
        left = _left(place, cell, done, verdict.failure, found) if has_all else None
        success = proof_of_end.success_of(left) if left else None
        if success and _loads(place, cell.name, found):
            return Verdict(Action.SUCCEED, reason=success.warning, doubt=success.doubt)
    except (BoxcarError, OSError, ValueError):
        pass  # what cannot be looked at is no success
    return verdict


def doubt_of(
    place: Place, cell: CellLine, done: Done, started: Event | None, by_signal: str = ""
) -> str:
    """What marks the success of this attempt; '' for nothing. `by_signal`: as it ended."""
    epochs = said.epochs_asked(place.plan, cell)
    told = progress_tail.last(place.scratch.out(cell.name)) if epochs else {}
    had_checkpoint = epochs and started is not None and started.data.get("resumes") is True
    # The next cell waits: a long log is read where nothing else counts.
    is_read = epochs and ("epoch" not in told or had_checkpoint)
    log = log_tail.read(place.scratch, cell.name).text if is_read else ""
    other = had_ended.other_than_asked(told, epochs, log)
    if had_checkpoint and not other:
        before = log_tail.before(place.scratch, cell.name)
        other = had_ended.began_again(before, log, epochs)
    doubts = proof_of_end.doubts(done.rc, done.oom_kills, other)
    return "; ".join([by_signal, *doubts] if by_signal else doubts)


def _left(place: Place, cell: CellLine, done: Done, failure: str, found: LeftArtifacts) -> Left:
    tail = log_tail.read(place.scratch, cell.name)
    epochs = said.epochs_asked(place.plan, cell)
    told = progress_tail.last(found.out)
    return Left(
        signal=exit_signals.signal_of_exit({done.rc}) or failure,
        is_abort_at_exit=exit_signals.is_abort_at_exit(tail.text),
        is_ended=had_ended.had_ended(told, epochs, tail.text),
        names_last=had_ended.names_last_epoch(epochs, tail.text),
        newest_ns=max(path.lstat().st_mtime_ns for path in found.files.values()),
        reported_ns=_reported_ns(found) if told else 0,
        logged_ns=place.scratch.log(cell.name).lstat().st_mtime_ns,
        ended_ns=int(timestamp.parse_utc(done.ended_at).timestamp() * 1e9),
        may_go_on=terms.terms_of_cell(place.plan, cell.name).resume is not None,
        was_told_to_stop=done.was_told_to_stop,
        lacks_metric=_lacks_metric(place, cell.name, found),
    )


def _reported_ns(found: LeftArtifacts) -> int:
    """The last epoch may be reported at its beginning; what is written at its end comes later."""
    return (found.out / progress.FILE).lstat().st_mtime_ns


def _lacks_metric(place: Place, cell: str, found: LeftArtifacts) -> bool:
    """Most are printed last."""
    begins_at = attempt.log_begins_at_bytes(place.scratch.running(cell))
    left = measure.Left(found.out, place.scratch.log(cell), begins_at)
    return any(
        number.value is None for number in measure.take_numbers(place.plan.metrics, [left])[0]
    )


def _loads(place: Place, cell: str, found: LeftArtifacts) -> bool:
    artifacts = terms.terms_of_cell(place.plan, cell).artifacts
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
