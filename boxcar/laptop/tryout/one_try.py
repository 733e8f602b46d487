"""One cell's try: its run, what it left where, and the pass that is kept of it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from boxcar.laptop.tryout import left_artifacts, not_there, outcome, passes
from boxcar.laptop.tryout.not_there import Tried
from boxcar.laptop.tryout.outcome import BEFORE, FAILED, PASSED, TIMED_OUT, FoundNumber, Outcome
from boxcar.laptop.tryout.passes import SmokePass
from boxcar.laptop.tryout.stage import Stage, by_hand, has_printed, log_end, tail, try_cell
from boxcar.shared import out_pattern, paths, resume_match, strays, timestamp
from boxcar.shared.cell import terms
from boxcar.shared.files.plan import IN_OUT, Cell
from boxcar.shared.metrics import measure
from boxcar.shared.triage import abort_at_exit


def remembered(stage: Stage, cell: Cell, key: str) -> Outcome | None:
    """The pass that holds for what would be tried, if there is one."""
    passed = passes.read_passes(stage.project.root, key)
    if passed is None:
        return None
    return Outcome(
        cell.name,
        BEFORE,
        seconds=passed.seconds,
        lacks=passed.lacks,
        beside=passed.beside,
        reserved=passed.reserved,
        no_number=passed.no_number,
        numbers=passed.numbers,
    )


def make_try(stage: Stage, cell: Cell, key: str) -> Outcome:
    """Run the cell, put the code's copy back, and keep a pass. Raises DamagedError, OSError."""
    began = time.monotonic()
    why, is_late = try_cell(stage, cell)
    if again := _why_again(stage, cell, why):
        why, is_late = try_cell(stage, cell)
    seconds = round(time.monotonic() - began, 1)
    out, log = stage.out(cell.name), str(stage.log(cell.name))
    lacks, reserved = _lacks(stage, cell, out), _reserved(stage, cell, out)
    written = stage.copy.put_back((*lacks, *_no_resume(stage, cell, out)))
    size_bytes, files = _measure(out)
    has_left_anything = bool(files) or has_printed(Path(log))
    why = why or outcome.try_fault(
        written, is_in_out=_is_in_out(stage), has_left_anything=has_left_anything
    )
    why = why or left_artifacts.problem(stage, cell)
    if why:
        word, typed = TIMED_OUT if is_late else FAILED, by_hand(stage, cell)
        hints = tuple(not_there.hints_at_missing(tail(Path(log)), _tried(stage, out)))
        return Outcome(
            cell.name, word, why, seconds, lacks, written.added, None, log, typed, hints, again
        )
    at = timestamp.utc_now()
    beside = tuple(
        one for one in written.added if not strays.is_of(one, stage.project.plan.collect)
    )
    no_number, numbers = _numbers(stage, out, Path(log))
    passed = SmokePass(
        *(cell.name, at, seconds, size_bytes, files, lacks, beside, reserved, no_number, numbers)
    )
    passes.write_pass(stage.project.root, key, passed)
    wrote = left_artifacts.names(out) if lacks else ()
    others = left_artifacts.others(stage.project.plan, cell, out, lacks) if lacks else ()
    shutil.rmtree(out, ignore_errors=True)  # forty checkpoints fill a laptop
    return Outcome(
        cell.name,
        PASSED,
        seconds=seconds,
        lacks=lacks,
        beside=beside,
        log=log,
        again=again,
        wrote=wrote,
        reserved=reserved,
        no_number=no_number,
        others=others,
        numbers=numbers,
    )


def _numbers(stage: Stage, out: Path, log: Path) -> tuple[dict[str, str], dict[str, FoundNumber]]:
    """Why there is none, and what was found and where; by name."""
    found = measure.take_with_place(stage.project.plan.metrics, measure.Left(out, log))
    numbers = {
        one.name: FoundNumber(one.value, where) for one, where in found if one.value is not None
    }
    return measure.notes([one for one, _ in found]), numbers


def _why_again(stage: Stage, cell: Cell, why: str) -> str:
    """Why a failed try says nothing of the cell; '' where it does."""
    is_torchs = bool(why) and abort_at_exit.is_abort_at_exit(log_end(stage.log(cell.name)))
    return "torch aborted its first try after the script's end" if is_torchs else ""


def _is_in_out(stage: Stage) -> bool:
    return stage.project.plan.workdir == IN_OUT


def _lacks(stage: Stage, cell: Cell, out: Path) -> tuple[str, ...]:
    wanted = [item.path for item in terms.terms_of_cell(stage.project.plan, cell.name).artifacts]
    return tuple(name for name in wanted if not _is_there(out, name))


def _reserved(stage: Stage, cell: Cell, out: Path) -> tuple[str, ...]:
    """What artifacts mean, and a box leaves out."""
    wanted = [item.path for item in terms.terms_of_cell(stage.project.plan, cell.name).artifacts]
    named = (
        name
        for one in wanted
        for name in (resume_match.newest_first(out, one) if out_pattern.is_pattern(one) else (one,))
    )
    ours = {name for name in named if paths.is_own_name(name, cell.name)}
    return tuple(sorted(name for name in ours if (out / name).exists()))


def _is_there(out: Path, name: str) -> bool:
    if out_pattern.is_pattern(name):
        return next(resume_match.find_checkpoints(out, name), None) is not None
    return (out / name).exists()


def _no_resume(stage: Stage, cell: Cell, out: Path) -> tuple[str, ...]:
    """The job's `resume`, where nothing of it is in {out}."""
    resume = terms.terms_of_cell(stage.project.plan, cell.name).resume
    return (resume,) if resume and next(resume_match.find_checkpoints(out, resume), None) is None else ()


def _tried(stage: Stage, out: Path) -> Tried:
    return Tried(
        stage.project.root / stage.project.job.code, stage.copy, out, is_in_out=_is_in_out(stage)
    )


def _measure(folder: Path) -> tuple[int, int]:
    """What lies in the folder: bytes and files."""
    found = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(found), len(found)
