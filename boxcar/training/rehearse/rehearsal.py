"""A rehearsal: two runs of one cell, their comparison, and what they left outside of {out}.

Everything lies in one work folder, whose files are removed when the next rehearsal begins there:
two_runs.py names what the runs leave, and report.json is what came of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from boxcar.shared.artifacts import resume_match
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _
from boxcar.training.rehearse import compare, curve, outside_writes, two_runs, verdict
from boxcar.training.rehearse.compare import Compared
from boxcar.training.rehearse.curve import Order
from boxcar.training.rehearse.observer import Seen
from boxcar.training.rehearse.outside_writes import Outside
from boxcar.training.rehearse.two_runs import Attempt, BadEnd, Request, Say, TwoRuns
from boxcar.training.rehearse.verdict import Evidence, Killed, Suspect

REPORT = "report.json"
_MARK = ".rehearsal"
_RUNS = ("out", "uninterrupted", "killed", "order", two_runs.AT_KILL)
_OURS = (*_RUNS, "hook", "logs", two_runs.NOTES, REPORT)


@dataclass(frozen=True)
class Report:
    """What came of it. `failure` is why a run ended badly, with the end of its log in `log_end`.

    `kept`: where both runs still lie; they are removed where they are as good as equal.
    """

    word: str
    seed: int
    suspects: tuple[Suspect, ...] = ()
    notes: tuple[str, ...] = ()
    kills: tuple[Killed, ...] = ()
    files: Mapping[str, Compared] = field(default_factory=dict)
    curve: curve.Curve = field(default_factory=curve.Curve)
    order: Order | None = None
    outside: tuple[Outside, ...] = ()
    failure: str = ""
    log: str = ""
    log_end: tuple[str, ...] = ()
    kept: str = ""

    @property
    def is_good(self) -> bool:
        return self.word in (verdict.BIT_EQUAL, verdict.WITHIN)


def rehearse(request: Request, say: Say) -> Report:
    """Run the cell twice and compare. Raises InputError, BoxcarError, OSError."""
    work = _prepare(request.work)
    report = replace(_judged(request, work, say), outside=_outside(work, request.environment))
    if not report.is_good:
        return replace(report, kept=str(work))
    for name in _RUNS:
        shutil.rmtree(work / name, ignore_errors=True)  # two checkpoints of each cell fill a laptop
    return report


def _prepare(folder: Path) -> Path:
    """A work folder that is empty but for its mark; only one that is marked is ever emptied."""
    work = Path(os.path.realpath(folder))
    if work.is_dir() and any(work.iterdir()) and not (work / _MARK).exists():
        raise InputError(
            _(
                "{folder}: this folder holds files that no rehearsal made; name another one: "
                "--work FOLDER",
                folder=folder,
            )
        )
    work.mkdir(parents=True, exist_ok=True)
    (work / _MARK).touch()
    for path in (work / name for name in _OURS):
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
    (work / "logs").mkdir()
    return work


def _judged(request: Request, work: Path, say: Say) -> Report:
    try:
        runs = two_runs.run_twice(request, work, say)
    except BadEnd as error:
        end = tuple(two_runs.tail(error.log))
        return Report(
            verdict.FAILED, request.seed, failure=error.why, log=str(error.log), log_end=end
        )
    if not runs.starts:
        note = _why_not_killed(runs.whole)
        return Report(verdict.NOT_PROVEN, request.seed, notes=(note,))
    say(_("3/3 comparing"))
    return _compared(request, work, runs)


def _why_not_killed(whole: Attempt) -> str:
    if not (whole.seen.reports or whole.seen.saves):
        return _("the script reports no step and never saves what it would resume from")
    return _(
        "the run always ended before it could be killed ({s:.1f} s): make it longer, some dozens "
        "of steps with saves in between",
        s=whole.seconds,
    )


# --- the comparison


def _compared(request: Request, work: Path, runs: TwoRuns) -> Report:
    files, notes = _files(request, work)
    whole, starts = runs.whole.seen, [start.seen for start in runs.starts]
    evidence = Evidence(
        files=files,
        curve=curve.compare_curves(
            whole.lines, [start.lines for start in starts], request.tolerance
        ),
        order=_order(work, runs),
        kills=_kills(whole, starts, runs.was_saved),
        resume=request.resume,
    )
    found = verdict.decide(evidence)
    return Report(
        word=found.word,
        seed=request.seed,
        suspects=found.suspects,
        notes=(*found.notes, *notes),
        kills=evidence.kills,
        files=files,
        curve=evidence.curve,
        order=evidence.order,
    )


def _files(request: Request, work: Path) -> tuple[dict[str, Compared], tuple[str, ...]]:
    """Resume file and artifacts of both runs; what neither has is no difference, and is said."""
    found: dict[str, Compared] = {}
    notes: list[str] = []
    for name in dict.fromkeys((request.resume, *request.artifacts)):
        whole, killed = (_left(request, work / run, name) for run in ("uninterrupted", "killed"))
        if whole is None and killed is None:
            notes.append(_("{file}: neither run left it, so it was not compared", file=name))
            continue
        one, why = compare.load_left(whole) if whole else (compare.ABSENT, "")
        other = compare.load_left(killed)[0] if killed else compare.ABSENT
        compared = compare.compare(one, other, request.tolerance)
        at_kill = _left(request, work / two_runs.AT_KILL, name)
        if name == request.resume and at_kill:
            compared = compare.without_unseeded(compared, compare.load_left(at_kill)[0], other)
        found[name] = compared
        notes += [_("{file}: {why}", file=name, why=why)] if why else []
    return found, tuple(notes)


def _left(request: Request, folder: Path, name: str) -> Path | None:
    """What a run left under this name; of a pattern it is the newest."""
    if name == request.resume or resume_match.is_pattern(name):
        return two_runs.checkpoint(folder, name)
    return folder / name if (folder / name).exists() else None


def _order(work: Path, runs: TwoRuns) -> Order | None:
    drawn = [
        curve.read_order(work / "order" / start.log.stem) for start in (runs.whole, *runs.starts)
    ]
    return curve.compare_orders(drawn[0], drawn[1:])


def _kills(whole: Seen, starts: list[Seen], was_saved: tuple[bool, ...]) -> tuple[Killed, ...]:
    first = min((report.step for report in whole.reports), default=None)
    found = []
    for number, is_there in enumerate(was_saved):
        step = starts[number + 1].reports[0].step if starts[number + 1].reports else None
        is_restarted = (
            first is not None
            and step is not None
            and step <= first
            and any(_is_beyond(seen, first) for seen in starts[: number + 1])
        )
        found.append(Killed(starts[number].last_step, is_there, step, is_restarted))
    return tuple(found)


def _is_beyond(seen: Seen, first: int) -> bool:
    """Whether something was saved after the first report: then the count goes on beyond it."""
    return any(save.after_step is not None and save.after_step >= first for save in seen.saves)


def _outside(work: Path, environment: Mapping[str, str]) -> tuple[Outside, ...]:
    notes = outside_writes.read_notes(work / two_runs.NOTES)
    there = {str(note["path"]): os.path.lexists(str(note["path"])) for note in notes}
    return tuple(outside_writes.judge(notes, there, outside_writes.places(environment)))
