"""One attempt at one cell: what `run_one.sh SPEC` becomes.

It owns the attempt, so that the agent may die and come back: it holds the cell's lock, looks again
whether there is anything left to do, runs the launcher, and writes how it ended.

The lock is the cell's log itself, held open as stdout by every process of the attempt: it is free
only when the last of them has ended, also when this program and the launcher were both killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.cell import launch
from boxcar.shared.cell.launch import Machine, Start
from boxcar.shared.disk import atomic, lock
from boxcar.shared.environment import PODS, own_name
from boxcar.shared.errors import BoxcarError, TemporaryError
from boxcar.shared.files import attempt_spec, codec
from boxcar.shared.files.attempt import Done, Running, read_running
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import _
from onbox.attempt.stop import Stop
from onbox.attempt.watch import Watch
from onbox.machine import cgroup, oom_kills, process, secret_env, terminal

_LOOPBACK = "/sys/class/net/lo"
_LOCK_TRIES = 40
_LOCK_WAIT_S = 0.05
# What ends a rank from outside, or by a crash; 255 is what a script means by exit(-1).
_SIGNALS = (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGTERM)
# What this program handles, and passes on to its launcher.
_PASSED_ON = (signal.SIGTERM, signal.SIGINT)
# As boxcar/shared/disk/regular_file.py opens: a script may have put a link or a pipe there.
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def main(path: Path) -> int:
    """Run what that document says; what cannot be run is said in one sentence."""
    try:
        return run(attempt_spec.read_attempt_spec(path))
    except (BoxcarError, OSError) as error:
        return terminal.say_error(error)


def run(spec: AttemptSpec) -> int:
    """Run the attempt; the launcher's exit code as a shell would give it.

    Raises TemporaryError, and InputError and DamagedError before anything was started.
    """
    scratch = ScratchPaths(Path(spec.data_dir), spec.run)
    log_fd = _take_lock(scratch.log(spec.cell))
    is_parent_of_orphans = process.adopt_orphans()
    cookie = process.cookie(str(scratch.root), spec.cell, spec.attempt)
    find = lambda: _find_processes(cookie)  # noqa: E731
    stop = Stop(find, spec.launcher, spec.grace_s, spec.limit_s)
    if _is_settled(spec, scratch):
        return 0
    machine = _machine(scratch.spec(spec.cell, spec.attempt))
    start = launch.start(spec, machine, secret_env.read(spec.credentials))
    start.environ[process.COOKIE] = cookie
    started_at, started = timestamp.utc_now(), time.monotonic()
    group = cgroup.create(lambda: cgroup.name_of(cookie))
    _write_running(spec, scratch, started_at, _write_head(spec, log_fd), group)
    killed_before = oom_kills.count()
    watch = Watch(spec, scratch, start.argv, find, log_fd)
    for path, text in start.files.items():
        atomic.write_whole(path, text.encode())
    scratch.out(spec.cell).mkdir(parents=True, exist_ok=True)
    pid = become(start, spec.workdir, log_fd, group)
    stop.watch(pid)
    _sync_folders(scratch, spec.cell)
    rc = _meant(spec.launcher, _wait(pid, watch, stop))
    stop.launcher_ended()
    found_wrong = watch.found_wrong(rc)
    if process.has_children() or not is_parent_of_orphans or (group and cgroup.members(group)):
        stop.end_left()
    if group:
        cgroup.remove(group)
    done = Done(
        cell=spec.cell,
        attempt=spec.attempt,
        rc=rc,
        started_at=started_at,
        ended_at=timestamp.utc_now(),
        seconds=round(time.monotonic() - started, 3),
        oom_kills=max(0, oom_kills.count() - killed_before),
        was_told_to_stop=stop.was_told,
        release=spec.release,
        over_time_s=spec.limit_s if stop.is_over_time else None,
        peak_bytes=_peak_bytes(),
        **found_wrong,
    )
    atomic.write_whole(scratch.done(spec.cell, spec.attempt), codec.to_document(done))
    return rc if rc >= 0 else 128 - rc


def _machine(spec: Path) -> Machine:
    """This one; `spec` is the document of the attempt."""
    has_loopback = os.path.exists(_LOOPBACK)  # noqa: PTH110
    pods = int(os.environ.get(PODS) or 0)
    begin = Path(__file__).resolve().parents[1] / "begin.py"
    lead = (sys.executable, "-I", "-S", str(begin), "lead", str(spec)) if pods > 1 else ()
    return Machine(os.environ, _free_port, own_name(os.environ), has_loopback, pods, lead)


def _peak_bytes() -> int:
    """Of the largest process that has ended here."""
    import resource

    in_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return in_kib if sys.platform == "darwin" else in_kib * 1024


def _find_processes(cookie: str) -> list[int]:
    """Everything that the attempt has started, wherever it went."""
    # A daemon may have another environment, and a rank another parent: not mostly both.
    return [*{*process.with_cookie(cookie), *process.descendants(os.getpid())}]


def _free_port() -> int:
    import socket  # late: most launchers need none, and it takes a tenth of this program's start

    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


def _sync_folders(scratch: ScratchPaths, cell: str) -> None:
    """While the script runs: else a power cut could take the record of its end with its folder."""
    with contextlib.suppress(OSError):
        atomic.sync_folder(scratch.cell(cell))
        atomic.sync_folder(scratch.cells)


def _take_lock(log: Path) -> int:
    log.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS, 0o644)
    for _try in range(_LOCK_TRIES):
        if _try_lock(log, fd):
            return fd
        time.sleep(_LOCK_WAIT_S)  # the agent may be looking, for an instant
    os.close(fd)
    raise TemporaryError(_("{log}: an earlier attempt at this cell is still running", log=log))


def _try_lock(log: Path, fd: int) -> bool:
    try:
        return lock.try_lock(fd)
    except OSError as error:
        if not lock.is_none_here(error):
            raise
    # Held until this program ends. What outlives it has no part in it: the agent ends it by its
    # record.
    return lock.try_stand_in(log) is not None


def _is_settled(spec: AttemptSpec, scratch: ScratchPaths) -> bool:
    """Looked at under the lock: this program may have been overtaken while it was starting, by a
    later attempt or by a result. Raises DamagedError; and OSError where that cannot be known: a
    tier that is away is no tier without results.
    """
    durable = DurablePaths(Path(spec.durable_dir), spec.run)
    if scratch.done(spec.cell, spec.attempt).exists():
        return True
    if _is_there(durable.manifest(spec.cell)):
        from onbox.result import published  # late: it reads receipts, and most cells have none yet

        if published.stands(durable, spec.cell):
            return True
    running = read_running(scratch.running(spec.cell))
    return running is not None and running.attempt > spec.attempt


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _write_head(spec: AttemptSpec, log_fd: int) -> int:
    """Begin this attempt's part of the log; where that is, in bytes."""
    head = f"=== attempt {spec.attempt} at {spec.cell}, {timestamp.utc_now()} ===\n"
    os.write(log_fd, head.encode())
    return os.fstat(log_fd).st_size


def _write_running(
    spec: AttemptSpec,
    scratch: ScratchPaths,
    started_at: str,
    log_begins_at_bytes: int,
    group: str | None,
) -> None:
    made = Running(
        cell=spec.cell,
        attempt=spec.attempt,
        pid=os.getpid(),
        start_time=process.start_time(os.getpid()) or "",
        boot_id=process.boot_id(),
        started_at=started_at,
        log_begins_at_bytes=log_begins_at_bytes,
        cgroup=group or "",
    )
    # Another boot makes it void, so it need not reach the disk.
    atomic.replace_by(scratch.running(spec.cell), codec.to_document(made), is_synced=False)


def _wait(launcher: int, watch: Watch, stop: Stop) -> int:
    """Wait for the launcher; meanwhile look at what it starts, and reap adopted orphans."""
    with _child_ends() as ended:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == launcher:
                return os.waitstatus_to_exitcode(status)
            if pid == 0:
                pause_s = min(watch.look(launcher), stop.look())
                select.select([ended], [], [], pause_s)
                with contextlib.suppress(BlockingIOError):
                    os.read(ended, 4096)


def _meant(launcher: str, rc: int) -> int:
    """deepspeed leaves with a rank's own code, and a byte holds no negative one: -9 becomes 247."""
    by_code = {256 + number: number for number in _SIGNALS} if launcher == launch.DEEPSPEED else {}
    return by_code.get(rc, rc)


@contextlib.contextmanager
def _child_ends() -> Iterator[int]:
    """A descriptor that can be read once a child has ended, or another signal came."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, _pass)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    try:
        yield readable
    finally:
        signal.set_wakeup_fd(-1)
        os.close(readable)
        os.close(writable)


def _pass(number: int, frame: Any) -> None:
    """Nothing: the wake-up is all that is wanted."""


# --- the process that becomes the launcher, in the kernel's group of the attempt


def become(start: Start, workdir: str, log_fd: int, group: str | None) -> int:
    """Start it with this log as its terminal; its process id. `group` None: where there is none."""
    parent = os.getpid()
    # Until it is another program: a handler of ours would swallow what the child is told.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    pid = os.fork()
    if pid == 0:
        try:
            for number in _PASSED_ON:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _move_in(group, parent)
            _replace(start, workdir, log_fd)
        finally:
            os._exit(exit_codes.NOT_FOUND)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _move_in(group: str | None, parent: int) -> None:
    """In the child: a session of its own, that ends with its parent, and the group."""
    os.setsid()
    process.die_with_parent()
    if os.getppid() != parent:
        os._exit(exit_codes.NOT_FOUND)  # it died before that
    if group:
        cgroup.enter(group)


def _replace(start: Start, workdir: str, log_fd: int) -> None:
    """In the child: the launcher takes its place. Returns where that cannot be, which it logs."""
    # Python ignores these, and what is started would do so too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    _take_log(log_fd)
    program = start.argv[0]
    try:
        os.chdir(workdir)
        os.execvpe(program, start.argv, start.environ)
    except OSError as error:
        os.write(2, f"{error.filename or program}: {error.strerror}\n".encode())


def _take_log(fd: int) -> None:
    """It becomes the terminal, and is closed otherwise; nothing can be read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for one, to in ((nothing, (0,)), (fd, (1, 2))):
        for at in to:
            os.dup2(one, at)
        os.close(one)
