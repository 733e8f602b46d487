"""Processes, told apart for certain, and ended for certain.

A process id alone may be somebody else's by now: with its start time and the boot it is not. Every
process of an attempt carries the attempt's cookie in its environment, so that it is found also when
torchrun gave it a session of its own and then died.

Linux. On macOS the cookie cannot be read: there only the launcher's own process group is ended.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

COOKIE = "BOXCAR_ATTEMPT_ID"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PROC = "/proc"
# In the name of the agent's file, which is in its command.
_AGENT = b"/onbox-"
# Set in all that a Slurm job starts.
_SLURM_JOB = "SLURM_JOB_ID"
# A process that hangs in a driver cannot be killed; nobody waits for it for ever.
_KILL_S = 30.0


def cookie(scratch: str, cell: str, attempt: int) -> str:
    """What every process of an attempt carries. `scratch` is the run's folder on the box's disk."""
    return f"{scratch}:{cell}:{attempt}"


def older_cookie(scratch: str, pid: int) -> str:
    """The same of an older release's, whose program waited before it had a cell."""
    return cookie(scratch, "", pid)


def boot_id() -> str:
    """What changes when the machine was started again."""
    try:
        return _bytes(f"{_PROC}/sys/kernel/random/boot_id").decode().strip()
    except OSError:
        return _output_of(["sysctl", "-n", "kern.boottime"])


def start_time(pid: int) -> str | None:
    """When a process was started, in the system's own words; None where there is none."""
    try:
        line = os.fsdecode(_read(pid, "stat"))
    except OSError:
        return None if _has_proc() else _output_of(["ps", "-o", "lstart=", "-p", str(pid)]) or None
    # The name in parentheses may hold spaces and parentheses itself.
    fields = line.rpartition(")")[2].split()
    is_dead = fields[0] in ("Z", "X")
    return None if is_dead else fields[19]


def is_same(pid: int, started: str, boot: str) -> bool:
    """Whether the process that was written down is still this one."""
    return boot == boot_id() and start_time(pid) == started


def with_cookie(*cookies: str) -> list[int]:
    """The living processes that carry one of these cookies, without the caller."""
    wanted = [f"\0{COOKIE}={cookie}\0".encode() for cookie in cookies]
    found = []
    for pid in _pids():
        with suppress(OSError):
            environ = b"\0%b\0" % _read(pid, "environ")
            if any(one in environ for one in wanted) and start_time(pid):
                found.append(pid)
    return [pid for pid in found if pid != os.getpid()]


def _pids() -> list[int]:
    """Every process; none where the system has no such folder."""
    with suppress(OSError):
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208
    return []


def _read(pid: int, name: str) -> bytes:
    return _bytes(f"{_PROC}/{pid}/{name}")


def _bytes(path: str) -> bytes:
    """Without a Path, which costs more than the reading: all processes are looked at."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _has_proc() -> bool:
    return os.access(_PROC, os.X_OK)


def writers(path: Path) -> list[int]:
    """The living processes that have this file open for writing, without the caller."""
    try:
        wanted = path.stat()
    except OSError:
        return []
    about = wanted.st_dev, wanted.st_ino
    others = [pid for pid in _pids() if pid != os.getpid()]
    return [pid for pid in others if any(_writes_to(link, about) for link in _open_files(pid))]


def _open_files(pid: int) -> list[str]:
    """Links to them; none of a process that has ended meanwhile, or is another user's."""
    folder = f"{_PROC}/{pid}/fd"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]  # noqa: PTH208
    except OSError:
        return []


def _writes_to(link: str, wanted: tuple[int, int]) -> bool:
    with suppress(OSError):
        # The link's own permissions say how the file was opened: those of its owner.
        is_open_for_writing = bool(os.lstat(link).st_mode & 0o200)
        target = os.stat(link)  # noqa: PTH116
        return is_open_for_writing and (target.st_dev, target.st_ino) == wanted
    return False


def _parents() -> dict[int, int]:
    """Every living process, with its parent."""
    parents = {}
    for pid in _pids():
        with suppress(OSError):
            status, parent, _ = _read(pid, "stat").rpartition(b")")[2].split(maxsplit=2)
            if status not in (b"Z", b"X"):
                parents[pid] = int(parent)
    return parents


def descendants(pid: int) -> list[int]:
    """The living children of a process, and theirs. Of one that adopts orphans, those as well."""
    return [below for generation in generations(pid) for below in generation]


def heads(pids: Iterable[int]) -> list[int]:
    """Of these, those whose parent is none of them."""
    parents, among = _parents(), set(pids)
    return sorted(pid for pid in among if parents.get(pid) not in among)


def generations(pid: int) -> Iterator[list[int]]:
    """The living children of a process, then theirs, and so on."""
    parents = _parents()
    wanted = {pid}
    while wanted := {child for child, parent in parents.items() if parent in wanted}:
        yield sorted(wanted)


def listed_generations(pid: int) -> Iterator[list[int]]:
    """The same by the lists that the kernel keeps for each thread, where it does: at a small part
    of the cost, but one may be missed while another ends.
    """
    found = [pid]
    while found := [child for parent in found for child in _listed_children(parent)]:
        yield sorted(found)


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"{_PROC}/{pid}/task"):  # noqa: PTH208
            with suppress(OSError):
                found += map(int, _read(pid, f"task/{thread}/children").split())
    return found


def words(pid: int) -> list[str]:
    """The command of a process; empty where it has ended or cannot be looked at."""
    with suppress(OSError):
        return [os.fsdecode(word) for word in _command(pid)]
    return []


def environment(pid: int) -> dict[str, str]:
    """What a process was started with; empty where it has ended or cannot be looked at."""
    with suppress(OSError):
        entries = _read(pid, "environ").split(b"\0")
        pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
        return {name: value for name, _, value in pairs}
    return {}


def carrying(name: str) -> dict[int, str]:
    """The living processes whose environment has this variable, without the caller; its value."""
    found, wanted = {}, b"\0%b=" % name.encode()
    for pid in _pids():
        with suppress(OSError):
            _, here, rest = (b"\0" + _read(pid, "environ")).partition(wanted)
            if here and pid != os.getpid() and start_time(pid):
                found[pid] = os.fsdecode(rest.partition(b"\0")[0])
    return found


def program(pid: int) -> str:
    """What the program of a process is called: its words may hold a secret."""
    with suppress(OSError):
        return os.fsdecode(_read(pid, "comm").strip())
    return "?"


def orphans(since: str) -> list[int]:
    """The living children that the caller got from others (`adopt_orphans`), and theirs.

    `since` is a start time: what began before it is nobody's orphan.
    """
    mine = [pid for pid, parent in _parents().items() if parent == os.getpid()]
    strange = [pid for pid in mine if began_after(pid, since) and not _is_own(pid)]
    return [*strange, *(below for pid in strange for below in descendants(pid))]


def _is_own(pid: int) -> bool:
    """Whether the caller started this child: it is just about to exec, or writes to our pipe."""
    try:
        is_before_exec = _command(pid) == _command(os.getpid())
        return is_before_exec or bool(_pipes(pid) & _pipes(os.getpid()))
    except OSError:
        return True  # it has ended, or cannot be looked at


def began_after(pid: int, since: str) -> bool:
    """Whether it was started after that; both as `start_time` gives it, within one boot."""
    started = start_time(pid)
    return started is not None and started.isdigit() and int(started) > int(since)


def strangers(since: str) -> list[str]:
    """Processes of this user that began after that and are nobody's: their parent is gone.

    For people, `4711 (python3)`: a command's words may hold a secret, and this goes to webhooks.
    What carries an attempt's cookie is known.
    """
    found = []
    for pid, parent in _parents().items():
        with suppress(OSError):
            is_mine = os.stat(f"{_PROC}/{pid}").st_uid == os.geteuid()  # noqa: PTH116
            if parent == 1 and is_mine and began_after(pid, since) and not _is_known(pid):
                name = os.fsdecode(_read(pid, "comm").strip())
                found.append(f"{pid} ({name!a})")
    return found


def _is_known(pid: int) -> bool:
    """Whether it is an attempt's, or another queue's agent; in a job of Slurm what is not the
    job's: its attempts all are, and the node may be shared.
    """
    if (job := os.environ.get(_SLURM_JOB)) and not _has(pid, f"{_SLURM_JOB}={job}\0"):
        return True
    return _has(pid, f"{COOKIE}=") or any(_AGENT in word for word in _command(pid))


def _has(pid: int, variable: str) -> bool:
    return f"\0{variable}".encode() in b"\0" + _read(pid, "environ")


def _command(pid: int) -> list[bytes]:
    return _read(pid, "cmdline").rstrip(b"\0").split(b"\0")


def _pipes(pid: int) -> set[str]:
    """Raises OSError where it has ended, or cannot be looked at."""
    links = []
    folder = f"{_PROC}/{pid}/fd"
    for name in os.listdir(folder):  # noqa: PTH208
        with suppress(OSError):
            links.append(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
    return {link for link in links if link.startswith("pipe:")}


def reap(pids: Iterable[int]) -> None:
    """Take the exit status of orphans that have ended: by pid, so that nobody else's is taken."""
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def end_all(find: Callable[[], list[int]], grace_s: float) -> int:
    """End every process that `find` finds: TERM, `grace_s` seconds, KILL. How many there were."""
    first = find()
    signal_all(first, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while find() and time.monotonic() < deadline:
        time.sleep(0.05)
    kill_all(find)
    return len(first)


def kill_all(find: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + _KILL_S
    while (left := find()) and time.monotonic() < deadline:
        signal_all(left, signal.SIGKILL)
        time.sleep(0.05)


def adopt_orphans() -> bool:
    """Become the parent of grandchildren whose parent dies; False where that cannot be (macOS)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def has_children() -> bool:
    """Whether a child is left that has not ended; those that have are reaped."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def die_with_parent() -> None:
    """In a child before exec: be told to stop when the parent is killed (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _prctl(option: int, value: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    return hasattr(libc, "prctl") and libc.prctl(option, value, 0, 0, 0) == 0


def _output_of(command: list[str]) -> str:
    import subprocess  # late: where there is /proc, no program is asked

    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
