"""The two runs of a cell: one to its end, one killed and started again as the agent would do it.

Both have the same {out}, one after the other, so that no path in a checkpoint can differ. In the
work folder: out/, then uninterrupted/ and killed/ in its place; at_kill/ has the resume file as the
last kill left it; logs/ and order/ are by the name of each start.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.resume_match import is_pattern, parts
from boxcar.shared.cell import said
from boxcar.shared.errors import counted
from boxcar.training import data_order
from boxcar.training.rehearse import attempt, observer, outside_writes
from boxcar.training.rehearse.attempt import Attempt, Command
from boxcar.training.rehearse.observer import Kill

TOLERANCE = 1e-6
# As for a smoke: a rehearsal is some dozens of steps.
LIFE_TIMEOUT_S = 600.0
NOTES = "writes.jsonl"
# In a request: the out folder of its work folder.
OUT = "{out}"
AT_KILL = "at_kill"
_TRIES = 4
# A rehearsal is on the CPU, also where GPUs are.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What to rehearse. In `words`, the command, and in `cwd` {out} is the out folder of `work`.

    `resume`, a path or a pattern, and `artifacts` are relative to {out}. `resumed` is the command
    of a start that finds a checkpoint, for which {resume} stands; where it is empty that is `words`
    too. `links` are names below {out} for folders of the code. `environment` is that of the cell.
    """

    words: tuple[str, ...]
    work: Path
    cwd: Path
    resume: str
    artifacts: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    kills: int = 1
    seed: int = field(default_factory=lambda: secrets.randbelow(1_000_000))
    tolerance: float = TOLERANCE
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class BadEnd(Exception):
    """A run of the cell ended as it should not."""

    def __init__(self, what: str, ended: Attempt) -> None:
        super().__init__(f"{what} {ended.problem}")
        self.log = ended.log


@dataclass(frozen=True)
class TwoRuns:
    """`starts`: those of the killed run, in their order; empty where it could not be killed.

    `was_saved`: whether the resume file was there after each kill, so one less than starts.
    """

    whole: Attempt
    starts: tuple[Attempt, ...] = ()
    was_saved: tuple[bool, ...] = ()


def run_twice(request: Request, work: Path, say: Say) -> TwoRuns:
    """Raises BadEnd, and as `attempt.run` does."""
    say("1/3 uninterrupted, to its end")
    whole = _start(request, work, "uninterrupted", None, say)
    if whole.problem:
        raise BadEnd("the uninterrupted run", whole)
    (work / "out").rename(work / "uninterrupted")
    say(f"    ended well after {whole.seconds:.1f} s; {_said_steps(whole)}")
    planned = observer.choose_kills(whole.seen, request.kills, request.seed)
    if not planned:
        return TwoRuns(whole)
    found = _killed_run(request, work, whole, planned, say)
    (work / "out").rename(work / "killed")
    return found


def _start(request: Request, work: Path, name: str, kill: Kill | None, say: Say) -> Attempt:
    """One start of the command; its log and its data order have the start's name."""
    out, drawn = work / "out", work / "order" / name
    out.mkdir(exist_ok=True)
    said.place(out, Path("/"), request.links, work)  # whole paths
    shutil.rmtree(drawn, ignore_errors=True)
    drawn.mkdir(parents=True)
    python_path = request.environment.get("PYTHONPATH", "")
    environment = {
        **request.environment,
        **_NO_GPU,
        "BOXCAR_OUT": str(out),
        "BOXCAR_RESUME": _resume(out, request.resume),
        data_order.FOLDER: str(drawn),
        **outside_writes.prepare(work / "hook", work / NOTES, work, python_path),
    }
    cwd = Path(str(request.cwd).replace(OUT, str(out)))
    words = _words(request, out)
    command = Command(words, cwd, out, request.resume, environment, LIFE_TIMEOUT_S)
    return attempt.run_start(command, work / "logs" / f"{name}.log", kill, say)


def checkpoint(out: Path, resume: str) -> Path | None:
    """What a start finds there, or None. A rehearsal is over before a folder is a minute old."""
    return resume_match.chosen(out, resume, at_rest=True)


def _resume(out: Path, resume: str) -> str:
    """As the agent sets it: a plain path always."""
    if not is_pattern(resume):
        return str(out.joinpath(*parts(resume)))
    return str(checkpoint(out, resume) or "")


def _words(request: Request, out: Path) -> list[str]:
    found = checkpoint(out, request.resume) if request.resumed else None
    words = request.resumed if found else request.words
    filled = (word.replace(OUT, str(out)) for word in words)
    return [word.replace("{resume}", str(found)) if found else word for word in filled]


def _killed_run(
    request: Request, work: Path, whole: Attempt, planned: Sequence[Kill], say: Say
) -> TwoRuns:
    """The killed run to its end; without starts where it always ended before it could be killed."""
    if len(planned) < request.kills:
        times = counted(len(planned), "time")
        say(f"    a run this short can be killed {times}, not {request.kills}")
    for _ in range(_TRIES):
        say(f"2/3 killed {', then '.join(map(str, planned))} (repeat by --seed {request.seed})")
        runs = _try_kills(request, work, whole, planned, say)
        if runs.starts:
            return runs
        say("    that was too late, nothing was left to do; once more, with an earlier kill")
        planned = [observer.earlier_kill(planned[0], whole.seen)]
    return TwoRuns(whole)


def _try_kills(
    request: Request, work: Path, whole: Attempt, planned: Sequence[Kill], say: Say
) -> TwoRuns:
    shutil.rmtree(work / "out", ignore_errors=True)
    starts: list[Attempt] = []
    was_saved: list[bool] = []
    order: list[Kill | None] = [*planned, None]
    for number, kill in enumerate(order, start=1):
        started = _start(request, work, f"killed-{number}", kill, say)
        if started.problem:
            what = (
                "the run that was to be killed"
                if number == 1
                else "after the kill the same command"
            )
            raise BadEnd(what, started)
        if number == 1 and _is_too_late(started, whole):
            return TwoRuns(whole)
        starts.append(started)
        if started.code is not None:
            break
        was_saved.append(_keep_resume(request, work))
        say(f"    SIGKILL after {started.seconds:.1f} s; {_said_kill(request, started, was_saved)}")
    say(f"    started again: ended well after {started.seconds:.1f} s; {_said_steps(started)}")
    # A kill that came too late shows nothing; those before it do.
    return TwoRuns(whole, tuple(starts), tuple(was_saved))


def _keep_resume(request: Request, work: Path) -> bool:
    """Copy what the next start will find; False where it finds nothing."""
    found = checkpoint(work / "out", request.resume)
    if found and found.is_file():
        kept = work / AT_KILL / found.relative_to(work / "out")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, kept)
    return found is not None


def _is_too_late(started: Attempt, whole: Attempt) -> bool:
    """Whether nothing, or nothing but the end, was left to do at the first kill."""
    step, last = started.seen.last_step, whole.seen.last_step
    return started.code is not None or (step is not None and last is not None and step >= last)


def _said_steps(ended: Attempt) -> str:
    steps = [report.step for report in ended.seen.reports]
    return f"it reported steps {steps[0]} to {steps[-1]}" if steps else "it reported no step"


def _said_kill(request: Request, killed: Attempt, was_saved: Sequence[bool]) -> str:
    step = killed.seen.last_step
    at = "at a step that is unknown" if step is None else f"the last reported step is {step}"
    there = "is there" if was_saved[-1] else "is not there: nothing was saved"
    return f"{at}; {request.resume} {there}"
