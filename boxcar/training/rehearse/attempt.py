"""One start of the command, to its end or to a SIGKILL of everything that belongs to it.

Whoever belongs to a start carries its cookie in the environment and holds its log: torchrun gives
each rank a session of its own, so a process group alone would leave the ranks alive. Nothing of a
start lives when `run` returns, however it ended.

Not covered: a process that closed its output and cleared its environment. On macOS, where no
environment can be read, only the process group and what descends from it is found.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.disk import lock
from boxcar.shared.errors import BoxcarError, InputError
from boxcar.training.rehearse.observer import Kill, Observer, Seen

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
            return f"had not ended after {self.seconds:.0f} s"
        if self.code is not None and self.code < 0:
            return f"was killed by signal {-self.code}, and not by this rehearsal"
        return f"ended with exit code {self.code}" if self.code else ""


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
        raise InputError(f"{command.words[0]}: cannot be started: {error.strerror}") from error
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
    step = "no step reported yet" if seen.last_step is None else f"step {seen.last_step}"
    return f"  {seconds:.0f} s: {step}"


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
            left = ", ".join(map(str, _belonging(process.pid, cookie))) or "unknown"
            raise BoxcarError(f"{log}: a killed process of the cell still lives (pid {left})")
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
