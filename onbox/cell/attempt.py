"""One attempt at one cell: what `run_one.sh` becomes once it has set the stage.

It owns the attempt, so that the agent may die and come back: it holds the cell's lock, looks again
whether there is anything left to do, runs the launcher, and writes how it ended.

The lock is the cell's log itself, held open as stdout by every process of the attempt: it is free
only when the last of them has ended, also when this wrapper and the launcher were both killed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import FrameType

from boxcar.shared import exit_codes, timestamp
from boxcar.shared.disk import atomic, digest, lock, regular_file
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Done, Running, read_running
from boxcar.shared.files.plan import GRACE_S
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.record import dataclass
from onbox.cell import environment, published, world
from onbox.cell.processes import Record
from onbox.machine import cgroup, credentials, gauges, process

LEFTOVER_GRACE_S = 5.0
_LOCK_TRIES = 40
_LOCK_WAIT_S = 0.05


@dataclass(frozen=True)
class Attempt:
    scratch: ScratchPaths
    durable: DurablePaths
    release: str
    cell: str
    number: int
    argv: tuple[str, ...]
    platform_grace_s: float = GRACE_S
    ranks: int | None = None  # that the launcher is asked for; None: it starts none by itself
    env: Mapping[str, str] = field(default_factory=dict)
    python_path: tuple[str, ...] = ()
    limit_s: int | None = None  # it is told to leave then

    @property
    def cookie(self) -> str:
        return cookie(self.scratch, self.cell, self.number)

    def processes(self) -> list[int]:
        """Everything that the attempt has started, wherever it went."""
        # A daemon may have another environment, and a rank another parent: not mostly both.
        return [*{*process.with_cookie(self.cookie), *process.descendants(os.getpid())}]


def cookie(scratch: ScratchPaths, cell: str, number: int) -> str:
    """What every process of an attempt carries in its environment."""
    return f"{scratch.root}:{cell}:{number}"


def group_name(cookie: str) -> str:
    """Of the kernel's group of an attempt, see `cgroup`."""
    return digest.short(digest.of_bytes(cookie.encode(errors="surrogateescape")))


def run(attempt: Attempt, credentials_path: Path | None) -> int:
    """Run the attempt; the launcher's exit code as a shell would give it. Raises TemporaryError."""
    log_fd = _take_lock(attempt.scratch.log(attempt.cell))
    if _is_settled(attempt):
        return 0
    process.adopt_orphans()
    started_at, started = timestamp.utc_now(), time.monotonic()
    stop = _Stop(attempt)
    group = cgroup.create(group_name(attempt.cookie))
    _write_running(attempt, started_at, _write_head(attempt, log_fd), group)
    oom_kills = gauges.oom_kills()
    watch = _Watch(attempt, log_fd)
    rc = _launch(attempt, stop, watch, _secrets(credentials_path), group)
    if group:
        cgroup.remove(group)
    done = Done(
        cell=attempt.cell,
        attempt=attempt.number,
        rc=rc,
        started_at=started_at,
        ended_at=timestamp.utc_now(),
        seconds=round(time.monotonic() - started, 3),
        oom_kills=max(0, gauges.oom_kills() - oom_kills),
        was_told_to_stop=stop.was_told,
        release=attempt.release,
        ranks_asked=attempt.ranks if watch.wrong_ranks is not None else None,
        ranks_formed=watch.wrong_ranks,
        over_time_s=attempt.limit_s if stop.is_over_time else None,
    )
    path = attempt.scratch.done(attempt.cell, attempt.number)
    atomic.write_whole(path, codec.to_document(done))
    return rc if rc >= 0 else 128 - rc


def _launch(
    attempt: Attempt, stop: _Stop, watch: _Watch, secrets: dict[str, str], group: Path | None
) -> int:
    """Run the launcher until nothing of it is left; its exit code."""
    try:
        launcher = _start(attempt, watch.log_fd, secrets, group)
    except OSError as error:
        os.write(watch.log_fd, f"{attempt.argv[0]}: {error.strerror}\n".encode())
        return exit_codes.NOT_FOUND
    stop.watch(launcher)
    rc = _wait(launcher, watch, stop)
    stop.end()
    process.end_all(attempt.processes, LEFTOVER_GRACE_S)
    return rc


def _take_lock(log: Path) -> int:
    atomic.make_folder(log.parent)
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | regular_file.FLAGS, 0o644)
    for _ in range(_LOCK_TRIES):
        if _try_lock(log, fd):
            return fd
        time.sleep(_LOCK_WAIT_S)  # the agent may be looking, for an instant
    os.close(fd)
    raise TemporaryError(f"{log}: an earlier attempt at this cell is still running")


def _try_lock(log: Path, fd: int) -> bool:
    try:
        return lock.try_lock(fd)
    except OSError as error:
        if not lock.is_none_here(error):
            raise
    # Held until this wrapper ends. What outlives it has no part in it: the agent ends it by its
    # record.
    return lock.try_stand_in(log) is not None


def _is_settled(attempt: Attempt) -> bool:
    """Looked at under the lock: this wrapper may have been overtaken while it was starting."""
    if published.stands(attempt.durable, attempt.cell):
        return True
    if attempt.scratch.done(attempt.cell, attempt.number).exists():
        return True
    running = read_running(attempt.scratch.running(attempt.cell))
    return running is not None and running.attempt > attempt.number


def _secrets(path: Path | None) -> dict[str, str]:
    return credentials.read(path).env if path else {}


def _write_head(attempt: Attempt, log_fd: int) -> int:
    """Begin this attempt's part of the log; where that is, in bytes."""
    head = f"=== attempt {attempt.number} at {attempt.cell}, {timestamp.utc_now()} ===\n"
    os.write(log_fd, head.encode())
    return os.fstat(log_fd).st_size


def _write_running(
    attempt: Attempt, started_at: str, log_begins_at_bytes: int, group: Path | None
) -> None:
    running = Running(
        cell=attempt.cell,
        attempt=attempt.number,
        pid=os.getpid(),
        start_time=process.start_time(os.getpid()) or "",
        boot_id=process.boot_id(),
        started_at=started_at,
        log_begins_at_bytes=log_begins_at_bytes,
        cgroup=str(group or ""),
    )
    atomic.write_whole(attempt.scratch.running(attempt.cell), codec.to_document(running))


def _start(
    attempt: Attempt, log_fd: int, secrets: dict[str, str], group: Path | None
) -> subprocess.Popen[bytes]:
    atomic.make_folder(attempt.scratch.out(attempt.cell))
    return subprocess.Popen(
        attempt.argv,
        stdin=subprocess.DEVNULL,
        stdout=log_fd,
        stderr=log_fd,
        start_new_session=True,
        env=environment.of_launcher(os.environ, attempt.env, secrets, attempt.python_path)
        | {process.COOKIE: attempt.cookie},
        preexec_fn=functools.partial(_before_exec, group),  # noqa: PLW1509  (it has one thread)
    )


def _before_exec(group: Path | None) -> None:
    process.die_with_parent()
    if group:
        cgroup.enter(group)


def _wait(launcher: subprocess.Popen[bytes], watch: _Watch, stop: _Stop) -> int:
    """Wait for the launcher; meanwhile look at what it starts, and reap adopted orphans."""
    with _child_ends() as ended:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == launcher.pid:
                launcher.returncode = os.waitstatus_to_exitcode(status)
                return launcher.returncode
            if pid == 0:
                pause_s = min(watch.look(launcher.pid), stop.look_at_clock())
                select.select([ended], [], [], pause_s)
                with contextlib.suppress(BlockingIOError):
                    os.read(ended, 4096)


@contextlib.contextmanager
def _child_ends() -> Iterator[int]:
    """A descriptor that can be read once a child has ended, or another signal came."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    try:
        yield readable
    finally:
        signal.set_wakeup_fd(-1)
        os.close(readable)
        os.close(writable)


class _Watch:
    """Looks at what the launcher has started, and ends it where that is another number of ranks."""

    def __init__(self, attempt: Attempt, log_fd: int) -> None:
        self.log_fd = log_fd
        self.wrong_ranks: int | None = None
        self._attempt = attempt
        self._record = Record(attempt.scratch, attempt.cell, attempt.number)
        self._is_open = attempt.ranks is not None

    def look(self, launcher: int) -> float:
        """How many seconds the next look may wait."""
        pause_s = self._record.look()
        if self._is_open and (formed := world.formed(launcher, self._attempt.argv)) is not None:
            self._is_open = False
            if formed != self._attempt.ranks:
                self._end(formed)
        return pause_s

    def _end(self, formed: int) -> None:
        self.wrong_ranks = formed
        text = f"the launcher was asked for {self._attempt.ranks} ranks and formed {formed}"
        with contextlib.suppress(OSError):
            os.write(self.log_fd, f"boxcar: {text}: this attempt is ended\n".encode())
        process.end_all(self._attempt.processes, LEFTOVER_GRACE_S)


class _Stop:
    """SIGTERM means: let the script save and leave; whoever has not left in time is killed."""

    def __init__(self, attempt: Attempt) -> None:
        self.was_told = False
        self.is_over_time = False
        self._leaves_at = time.monotonic() + (attempt.limit_s or math.inf)
        self._launcher: subprocess.Popen[bytes] | None = None
        self._attempt = attempt
        self._grace_s = GRACE_S
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._tell)
        signal.signal(signal.SIGALRM, self._insist)

    def watch(self, launcher: subprocess.Popen[bytes]) -> None:
        """Pass on to this launcher what comes, and what came while it was being started."""
        self._launcher = launcher
        if self.was_told:
            self._pass_on()

    def look_at_clock(self) -> float:
        """In how many seconds its time is up; told to leave once it is."""
        left_s = self._leaves_at - time.monotonic()
        if left_s <= 0 and not (self.was_told or self.is_over_time):
            self.is_over_time = True
            self._pass_on()
        return left_s if left_s > 0 else math.inf

    def end(self) -> None:
        """The launcher is gone: whoever comes now comes too late."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _tell(self, number: int, frame: FrameType | None) -> None:
        self.was_told = True
        # The agent passes a person's stop on as SIGINT: nothing ends the box then. A platform that
        # gives no time sends no signal either, so that this one is somebody else's.
        if number == signal.SIGTERM and self._attempt.platform_grace_s:
            self._grace_s = min(self._grace_s, self._attempt.platform_grace_s)
        self._pass_on()

    def _pass_on(self) -> None:
        if self._launcher:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._launcher.pid, signal.SIGTERM)
            signal.setitimer(signal.ITIMER_REAL, self._grace_s)

    def _insist(self, number: int, frame: FrameType | None) -> None:
        for pid in self._attempt.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
