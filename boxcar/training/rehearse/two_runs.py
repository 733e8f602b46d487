"""The two runs of a cell: one to its end, one killed and started again as the agent would do it.

Both have the same {out}, one after the other, so that no path in a checkpoint can differ. In the
work folder: out/, then uninterrupted/ and killed/ in its place; at_kill/ has the resume file as the
last kill left it; logs/ and order/ are by the name of each start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.resume_match import is_pattern, parts
from boxcar.shared.cell import said
from boxcar.shared.disk import lock
from boxcar.shared.errors import BoxcarError, InputError, reason_of
from boxcar.shared.sentence import _, chained, mark
from boxcar.training import data_order
from boxcar.training.rehearse import observer, outside_writes
from boxcar.training.rehearse.observer import Kill, Observer, Seen

# --- One start of the command, to its end or to a SIGKILL of everything that belongs to it.
# Whoever belongs to a start carries its cookie in the environment and holds its log: torchrun gives
# each rank a session of its own, so a process group alone would leave the ranks alive. Nothing of a
# start lives when `run` returns, however it ended.
# Not covered: a process that closed its output and cleared its environment. On macOS, where no
# environment can be read, only the process group and what descends from it is found.


COOKIE = "BOXCAR_REHEARSE_LIFE"
LOOK_EVERY_S = 0.004
SAY_EVERY_S = 5.0
# Longer than any driver needs to let a killed process go.
_KILL_S = 30.0
_TAIL_BYTES = 64 * 1024
_PROC = Path("/proc")


@dataclass(frozen=True)
class Command:
    """What is started each time, identically. `out` and `resume` are only looked at."""

    words: Sequence[str]
    cwd: Path
    out: Path
    resume: str
    environment: Mapping[str, str]
    timeout_s: float


@dataclass(frozen=True)
class Attempt:
    """How a start ended: `code` is its exit code, or None where it was killed by us."""

    seen: Seen
    seconds: float
    log: Path
    code: int | None = None
    is_late: bool = False

    @property
    def problem(self) -> str:
        """Why it is no good end, '' for a good one and for a kill."""
        if self.is_late:
            return _("had not ended after {s:.0f} s", s=self.seconds)
        if self.code is not None and self.code < 0:
            signal_number = -self.code
            return _("was killed by signal {n}, and not by this rehearsal", n=signal_number)
        return _("ended with exit code {code}", code=self.code) if self.code else ""


def run_start(
    command: Command, log: Path, kill: Kill | None, say: Callable[[str], None]
) -> Attempt:
    """Start it, watch it, and kill it where `kill` says so. Raises InputError, BoxcarError."""
    watch, cookie = Observer(command.out, command.resume), secrets.token_hex(8)
    began = time.monotonic()
    process = _begin_process(command, log, cookie)
    try:
        is_due = _watched(process, watch, kill, command.timeout_s, say)
    finally:
        _end_all(process, cookie, log)
    seconds = time.monotonic() - began
    seen = watch.look(seconds)
    if is_due:
        return Attempt(seen, seconds, log)
    is_late = seconds > command.timeout_s
    return Attempt(seen, seconds, log, None if is_late else process.returncode, is_late)


def tail(log: Path, lines: int = 20) -> list[str]:
    """The last lines of what a start printed."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace").splitlines()[-lines:]


def _begin_process(command: Command, log: Path, cookie: str) -> subprocess.Popen[bytes]:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        return subprocess.Popen(
            list(command.words),
            cwd=command.cwd,
            env={**command.environment, COOKIE: cookie},
            stdin=subprocess.DEVNULL,
            stdout=fd,
            stderr=fd,
            start_new_session=True,
            close_fds=False,  # who started the rehearsal may want its lock kept by the cell
        )
    except OSError as error:
        raise InputError(
            _("{argv}: cannot be started: {error}", argv=command.words[0], error=reason_of(error))
        ) from error
    finally:
        os.close(fd)


def _watched(
    process: subprocess.Popen[bytes],
    watch: Observer,
    kill: Kill | None,
    timeout_s: float,
    say: Callable[[str], None],
) -> bool:
    """Look until it has ended, its time is up, or the kill is due (True)."""
    due_s: float | None = None
    began, said_s = time.monotonic(), 0.0
    while process.poll() is None:
        seconds = time.monotonic() - began
        seen = watch.look(seconds)
        if kill and due_s is None and kill.is_near(seen):
            due_s = seconds + kill.wait_s
        if due_s is not None and seconds >= due_s:
            return True
        if seconds > timeout_s:
            return False
        if seconds - said_s >= SAY_EVERY_S:
            said_s = seconds
            say(_sign_of_life(seen, seconds))
        time.sleep(LOOK_EVERY_S)
    return False


def _sign_of_life(seen: Seen, seconds: float) -> str:
    if seen.last_step is None:
        return _("  {s:.0f} s: no step reported yet", s=seconds)
    return _("  {s:.0f} s: step {step}", s=seconds, step=seen.last_step)


# --- the end of all of it


def _end_all(process: subprocess.Popen[bytes], cookie: str, log: Path) -> None:
    """SIGKILL to all at once, as when a box vanishes, until nobody holds the log any more."""
    until = time.monotonic() + _KILL_S
    while True:
        _kill(_belonging(process.pid, cookie))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.poll()
        if process.returncode is not None and not lock.is_held(log):
            return
        if time.monotonic() > until:
            left = ", ".join(map(str, _belonging(process.pid, cookie))) or _("unknown")
            raise BoxcarError(
                _(
                    "{file}: a killed process of the cell still lives (pid {pid})",
                    file=log,
                    pid=left,
                )
            )
        time.sleep(0.01)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _belonging(leader: int, cookie: str) -> list[int]:
    """The living processes of a start, without its leader, whose group is killed by itself."""
    if not _PROC.is_dir():
        return _descendants(leader)
    wanted, found = f"{COOKIE}={cookie}".encode(), []
    for entry in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return [pid for pid in found if pid != leader]


def _descendants(leader: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False
    )
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = {leader}
    while new := {pid for pid, parent in pairs if parent in found} - found:
        found |= new
    return sorted(found - {leader})


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
        self.why = _("{what} {problem}", what=what, problem=ended.problem)
        super().__init__(self.why)
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
    say(_("1/3 uninterrupted, to its end"))
    whole = _start(request, work, "uninterrupted", None, say)
    if whole.problem:
        raise BadEnd(_("the uninterrupted run"), whole)
    (work / "out").rename(work / "uninterrupted")
    say(_("    ended well after {s:.1f} s; {steps}", s=whole.seconds, steps=_said_steps(whole)))
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
    return run_start(command, work / "logs" / f"{name}.log", kill, say)


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
        words = {"n": len(planned), "wanted": request.kills}
        say(_("    a run this short can be killed {n} {n:time|times}, not {wanted}", **words))
    for _number in range(_TRIES):
        whens = chained(mark("{first}, then {second}"), [kill.when for kill in planned])
        say(_("2/3 killed {whens} (repeat by --seed {seed})", whens=whens, seed=request.seed))
        runs = _try_kills(request, work, whole, planned, say)
        if runs.starts:
            return runs
        say(_("    that was too late, nothing was left to do; once more, with an earlier kill"))
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
                _("the run that was to be killed")
                if number == 1
                else _("after the kill the same command")
            )
            raise BadEnd(what, started)
        if number == 1 and _is_too_late(started, whole):
            return TwoRuns(whole)
        starts.append(started)
        if started.code is not None:
            break
        was_saved.append(_keep_resume(request, work))
        at = _said_kill(request, started, was_saved)
        say(_("    SIGKILL after {s:.1f} s; {at}", s=started.seconds, at=at))
    words = {"s": started.seconds, "steps": _said_steps(started)}
    say(_("    started again: ended well after {s:.1f} s; {steps}", **words))
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
    if not steps:
        return _("it reported no step")
    return _("it reported steps {first} to {last}", first=steps[0], last=steps[-1])


def _said_kill(request: Request, killed: Attempt, was_saved: Sequence[bool]) -> str:
    step = killed.seen.last_step
    at = (
        _("at a step that is unknown")
        if step is None
        else _("the last reported step is {step}", step=step)
    )
    if was_saved[-1]:
        return _("{at}; {file} is there", at=at, file=request.resume)
    return _("{at}; {file} is not there: nothing was saved", at=at, file=request.resume)
