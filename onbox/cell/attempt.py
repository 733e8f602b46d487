"""One attempt at one cell: what `run_one.sh` becomes once it has set the stage.

It owns the attempt, so that the agent may die and come back: it holds the cell's lock, looks again
whether there is anything left to do, runs the launcher, and writes how it ended.

The lock is the cell's log itself, held open as stdout by every process of the attempt: it is free
only when the last of them has ended, also when this wrapper and the launcher were both killed.
"""

from __future__ import annotations

import os
import select
import time

from boxcar.shared import timestamp
from boxcar.shared.cell.grace import GRACE_S
from boxcar.shared.disk import atomic, lock
from onbox.cell import environment
from onbox.cell.wrapper import documents
from onbox.cell.wrapper.launcher import Launcher
from onbox.cell.wrapper.places import Durable, Scratch
from onbox.cell.wrapper.stop import DEEPSPEED, Stop, end_soon
from onbox.machine import cgroup, oom_kills, process
from onbox.machine.light import signal, suppress

# Not typing's. What is imported above stands in the gap between two cells, so that is little, and
# the rest comes late: tests/onbox/cell/wrapper/test_begin.py knows what.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from onbox.cell.wrapper.watch import Watch

# Before the first look at what the launcher has started: no sooner has it started anything.
FIRST_LOOK_S = 0.5
_LOCK_TRIES = 40
_LOCK_WAIT_S = 0.05
# What ends a rank from outside, or by a crash; 255 is what a script means by exit(-1).
_SIGNALS = (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGTERM)
# As boxcar/shared/disk/regular_file.py opens: a script may have put a link or a pipe there.
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Attempt:
    """`launcher` is its name. `ranks` is how many it is asked for; None: it starts none by itself.

    After `limit_s` it is told to leave.
    """

    def __init__(  # noqa: PLR0917
        self,
        scratch: Scratch,
        durable: Durable,
        release: str,
        cell: str,
        number: int,
        argv: tuple[str, ...],
        platform_grace_s: float = GRACE_S,
        *,
        launcher: str = "",
        ranks: int | None = None,
        env: Mapping[str, str] | None = None,
        python_path: tuple[str, ...] = (),
        limit_s: int | None = None,
    ) -> None:
        self.scratch, self.durable, self.release = scratch, durable, release
        self.cell, self.number, self.argv = cell, number, argv
        self.platform_grace_s, self.limit_s = platform_grace_s, limit_s
        self.launcher, self.ranks = launcher, ranks
        self.env, self.python_path = env or {}, python_path

    @property
    def cookie(self) -> str:
        """What every process of it carries in its environment."""
        return process.cookie(self.scratch.root, self.cell, self.number)

    def environ(self, box: Mapping[str, str], credentials_path: str | None) -> dict[str, str]:
        """Its launcher's, in a box's own. Raises InputError, DamagedError, OSError."""
        secrets = _secrets(credentials_path)
        own = environment.of_launcher(box, self.env, secrets, self.python_path)
        return own | {process.COOKIE: self.cookie}

    def processes(self) -> list[int]:
        """Everything that the attempt has started, wherever it went."""
        # A daemon may have another environment, and a rank another parent: not mostly both.
        return [*{*process.with_cookie(self.cookie), *process.descendants(os.getpid())}]


def run(attempt: Attempt, credentials_path: str | None, launcher: Launcher | None = None) -> int:
    """Run the attempt; the launcher's exit code as a shell would give it. Raises TemporaryError.

    `launcher` is there where it was prepared before.
    """
    log_fd = _take_lock(attempt.scratch.log(attempt.cell))
    is_parent_of_orphans = process.adopt_orphans()
    stop = Stop(attempt.processes, attempt.launcher, attempt.platform_grace_s, attempt.limit_s)
    if _is_settled(attempt):
        if launcher:
            launcher.end()
        return 0
    started_at, started = timestamp.utc_now(), time.monotonic()
    launcher = launcher or Launcher(attempt.argv, attempt.cookie)
    group = launcher.group
    _write_running(attempt, started_at, _write_head(attempt, log_fd), group)
    killed_before = oom_kills.count()
    watch = _LateWatch(attempt, log_fd)
    pid = _start(attempt, stop, log_fd, credentials_path, launcher)
    _sync_folders(attempt)
    rc = _meant(attempt.launcher, _wait(pid, watch, stop))
    stop.launcher_ended()
    found_wrong = watch.found_wrong(rc)
    if process.has_children() or not is_parent_of_orphans or (group and cgroup.members(group)):
        stop.end_left()
    if group:
        cgroup.remove(group)
    _write_done(
        attempt,
        rc=rc,
        started_at=started_at,
        ended_at=timestamp.utc_now(),
        seconds=round(time.monotonic() - started, 3),
        oom_kills=max(0, oom_kills.count() - killed_before),
        was_told_to_stop=stop.was_told,
        release=attempt.release,
        **({"over_time_s": attempt.limit_s} if stop.is_over_time else {}),
        **found_wrong,
    )
    return rc if rc >= 0 else 128 - rc


def _start(
    attempt: Attempt, stop: Stop, log_fd: int, credentials_path: str | None, launcher: Launcher
) -> int:
    """The launcher's process id."""
    os.makedirs(attempt.scratch.out(attempt.cell), exist_ok=True)  # noqa: PTH103
    pid = launcher.become(attempt.environ(os.environ, credentials_path), log_fd)
    stop.watch(pid)
    return pid


def _sync_folders(attempt: Attempt) -> None:
    """While the script runs: else a power cut could take the record of its end with its folder."""
    folder = attempt.scratch.cell(attempt.cell)
    with suppress(OSError):
        atomic.sync_folder(folder)
        atomic.sync_folder(f"{folder}/..")


def _take_lock(log: str) -> int:
    os.makedirs(os.path.dirname(log), exist_ok=True)  # noqa: PTH103, PTH120
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS, 0o644)
    for _ in range(_LOCK_TRIES):
        if _try_lock(log, fd):
            return fd
        time.sleep(_LOCK_WAIT_S)  # the agent may be looking, for an instant
    os.close(fd)
    from boxcar.shared.errors import TemporaryError

    raise TemporaryError(f"{log}: an earlier attempt at this cell is still running")


def _try_lock(log: str, fd: int) -> bool:
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
    scratch, cell = attempt.scratch, attempt.cell
    if os.access(scratch.done(cell, attempt.number), os.F_OK):
        return True
    if not _is_there(attempt.durable.manifest(cell)) and not _is_there(scratch.running(cell)):
        return False
    from onbox.cell.wrapper import overtaken

    return overtaken.is_overtaken(scratch, attempt.durable, cell, attempt.number)


def _is_there(path: str) -> bool:
    """Raises OSError where that cannot be known: a tier that is away is no tier without results."""
    try:
        os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _secrets(path: str | None) -> Mapping[str, str]:
    if path is None or not _is_there(path):
        return {}
    from onbox.machine import secret_env

    return secret_env.read(path)


def _write_head(attempt: Attempt, log_fd: int) -> int:
    """Begin this attempt's part of the log; where that is, in bytes."""
    head = f"=== attempt {attempt.number} at {attempt.cell}, {timestamp.utc_now()} ===\n"
    os.write(log_fd, head.encode())
    return os.fstat(log_fd).st_size


def _write_running(
    attempt: Attempt, started_at: str, log_begins_at_bytes: int, group: str | None
) -> None:
    fields: dict[str, documents.Value] = {
        "cell": attempt.cell,
        "attempt": attempt.number,
        "pid": os.getpid(),
        "start_time": process.start_time(os.getpid()) or "",
        "boot_id": process.boot_id(),
        "started_at": started_at,
    }
    if log_begins_at_bytes:
        fields["log_begins_at_bytes"] = log_begins_at_bytes
    if group:
        fields["cgroup"] = group
    path = attempt.scratch.running(attempt.cell)
    # Another boot makes it void, so it need not reach the disk.
    atomic.replace_by(path, documents.running(fields), is_synced=False)


def _write_done(attempt: Attempt, **more: documents.Value) -> None:
    fields = {"cell": attempt.cell, "attempt": attempt.number, **more}
    path = attempt.scratch.done(attempt.cell, attempt.number)
    atomic.write_whole(path, documents.done(fields))


def _wait(launcher: int, watch: _LateWatch, stop: Stop) -> int:
    """Wait for the launcher; meanwhile look at what it starts, and reap adopted orphans."""
    with _ChildEnds() as ended:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == launcher:
                return os.waitstatus_to_exitcode(status)
            if pid == 0:
                pause_s = min(watch.look(launcher), stop.look())
                select.select([ended], [], [], pause_s)
                with suppress(BlockingIOError):
                    os.read(ended, 4096)


def _meant(launcher: str, rc: int) -> int:
    """deepspeed leaves with a rank's own code, and a byte holds no negative one: -9 becomes 247."""
    by_code = {256 + number: number for number in _SIGNALS} if launcher == DEEPSPEED else {}
    return by_code.get(rc, rc)


class _ChildEnds:
    """A descriptor that can be read once a child has ended, or another signal came."""

    def __enter__(self) -> int:
        self._readable, self._writable = os.pipe()
        os.set_blocking(self._readable, False)
        os.set_blocking(self._writable, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._writable, warn_on_full_buffer=False)
        return self._readable

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._readable)
        os.close(self._writable)


class _LateWatch:
    """Looks at what the launcher has started; a cell that is shorter than that needs no look."""

    def __init__(self, attempt: Attempt, log_fd: int) -> None:
        self.log_fd = log_fd
        self._attempt = attempt
        # Of several ranks it is seen how many form, however short they are.
        has_ranks = (attempt.ranks or 1) > 1
        self._first_at = time.monotonic() + (0.0 if has_ranks else FIRST_LOOK_S)
        self._watch: Watch | None = None

    def look(self, launcher: int) -> float:
        """How many seconds the next look may wait."""
        left_s = self._first_at - time.monotonic()
        if left_s > 0:
            return left_s
        if self._watch is None:
            from onbox.cell.wrapper.watch import Watch

            one = self._attempt
            self._watch = Watch(
                one.scratch, one.cell, one.number, argv=one.argv, ranks=one.ranks, end=self._end
            )
        return self._watch.look(launcher)

    def found_wrong(self, rc: int) -> dict[str, documents.Value]:
        """Once the launcher has ended: where another number of ranks formed than was asked for,
        both; and how many live on where its code says that all is well.
        """
        if self._watch is None:
            return {}
        formed, living = self._watch.wrong_ranks, self._watch.living_ranks() if rc == 0 else 0
        found: dict[str, documents.Value] = {}
        if formed is not None:
            found |= {"ranks_asked": self._attempt.ranks, "ranks_formed": formed}
        if living:
            found |= {"ranks_alive": living}
        return found

    def _end(self, text: str) -> None:
        with suppress(OSError):
            os.write(self.log_fd, f"boxcar: {text}: this attempt is ended\n".encode())
        end_soon(self._attempt.processes)
