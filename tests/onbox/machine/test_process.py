from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onbox.machine import cgroup, io_class, process

COOKIE = "/scratch/boxcar/run:cell:1"

# Two forks and a session of its own: what a data loader's or a logger's daemon does.
DAEMON = """\
import os, sys, time
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    sys.exit()
print(os.getpid(), flush=True)
os.closerange(0, 3)
time.sleep(600)
"""
STUBBORN = """\
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""
POLITE = """\
import pathlib, signal, sys, time
def leave(number, frame):
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit()
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
time.sleep(600)
"""

Spawn = Callable[..., tuple["subprocess.Popen[str]", str]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start Python code with a cookie; the process, and the first line that it says."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *words: str, cookie: str = COOKIE) -> tuple[subprocess.Popen[str], str]:
        child = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            env={**os.environ, process.COOKIE: cookie},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        assert child.stdout
        return child, child.stdout.readline().strip()

    yield start
    for child in started:
        child.kill()
        child.communicate()
    for pid in process.with_cookie(COOKIE):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def ours() -> list[int]:
    return process.with_cookie(COOKIE)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_process_is_the_same_only_with_its_start_time_and_boot():
    pid, boot = os.getpid(), process.boot_id()
    started = process.start_time(pid)
    assert started
    assert process.is_same(pid, started, boot)
    assert not process.is_same(pid, str(int(started) + 1), boot)
    assert not process.is_same(pid, started, "another boot")


def test_two_processes_of_different_times_differ():
    first = process.start_time(1)
    assert first
    assert not process.is_same(os.getpid(), first, process.boot_id())


def test_a_process_that_has_ended_has_no_start_time_also_before_it_was_waited_for(until):
    child = subprocess.Popen(["true"])
    until(lambda: not is_alive(child.pid))
    assert process.start_time(child.pid) is None
    child.wait()
    assert process.start_time(child.pid) is None


def test_a_name_with_spaces_and_parentheses_does_not_mislead(tmp_path, until):
    (tmp_path / "x) Z (1").symlink_to("/bin/sleep")
    child = subprocess.Popen([str(tmp_path / "x) Z (1"), "600"])
    try:
        stat = until(lambda: _stat_of(child.pid, "x) Z (1"))
        assert process.start_time(child.pid) == stat.rpartition(")")[2].split()[19]
    finally:
        child.kill()
        child.wait()


def _stat_of(pid: int, name: str) -> str | None:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat if name in stat else None


def test_the_cookie_finds_a_daemon_in_a_session_of_its_own(spawn, until):
    _, pid = spawn(DAEMON)
    until(lambda: process.with_cookie(COOKIE) == [int(pid)])


def test_the_cookie_of_another_attempt_is_another_cookie(spawn):
    spawn(STUBBORN, cookie=f"{COOKIE}1")
    assert process.with_cookie(COOKIE) == []


def test_the_caller_is_not_among_its_own(spawn):
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        f"from onbox.machine import process; print(process.with_cookie({COOKIE!r}))"
    )
    assert spawn(code)[1] == "[]"


def test_all_are_asked_first_and_those_that_do_not_listen_are_killed(spawn, tmp_path):
    polite, _ = spawn(POLITE, str(tmp_path / "saved"))
    stubborn, _ = spawn(STUBBORN)
    assert process.end_all(ours, grace_s=0.5) == 2
    assert (tmp_path / "saved").read_text() == "saved"
    assert process.with_cookie(COOKIE) == []
    assert not is_alive(polite.pid)
    assert not is_alive(stubborn.pid)


def test_nobody_is_waited_for_where_nobody_is_left():
    assert process.end_all(ours, grace_s=3600.0) == 0


def test_a_child_is_told_to_stop_when_its_parent_is_killed(spawn, tmp_path, until):
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import subprocess, time; from onbox.machine import process\n"
        f"subprocess.Popen([sys.executable, '-c', {POLITE!r}, sys.argv[1]], "
        "preexec_fn=process.die_with_parent)\n"
        "time.sleep(600)"
    )
    parent, said = spawn(code, str(tmp_path / "saved"))
    assert said == "ready"
    parent.kill()
    parent.wait()
    until(lambda: not process.with_cookie(COOKIE))
    assert (tmp_path / "saved").read_text() == "saved"


def test_orphans_come_to_the_one_who_adopts_them(spawn, until):
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import os, subprocess, time; from onbox.machine import process\n"
        "process.adopt_orphans()\n"
        f"child = subprocess.run([sys.executable, '-c', {DAEMON!r}], capture_output=True)\n"
        "print(int(child.stdout), flush=True)\n"
        "time.sleep(600)"
    )
    parent, pid = spawn(code)
    until(lambda: parent_of(int(pid)) == parent.pid)


@pytest.mark.parametrize(("job", "is_named"), [("42", True), ("7", False), (None, False)])
def test_in_a_job_of_slurm_only_what_is_the_jobs_can_be_an_attempts(
    job, is_named, monkeypatch, until
):
    since = process.start_time(os.getpid())
    own = {name: text for name, text in os.environ.items() if name != "SLURM_JOB_ID"}
    env = own | ({"SLURM_JOB_ID": job} if job else {})
    words = [sys.executable, "-c", DAEMON]
    pid = int(subprocess.run(words, env=env, capture_output=True, check=True).stdout)
    try:
        until(lambda: process.start_time(pid))
        if parent_of(pid) != 1:
            pytest.skip("orphans do not go to process 1 here")
        monkeypatch.setenv("SLURM_JOB_ID", "42")
        named = [told for told in process.strangers(since) if told.startswith(f"{pid} ")]
        assert bool(named) is is_named
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_daemon_that_cleared_its_environment_descends_from_the_one_who_adopts(spawn, until):
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import os, subprocess; from onbox.machine import process\n"
        "process.adopt_orphans()\n"
        f"words = [sys.executable, '-c', {DAEMON!r}]\n"
        "child = subprocess.run(words, capture_output=True, env={})\n"
        "print(int(child.stdout), flush=True)\n"
        "sys.stdin.readline()\n"
        "print(process.end_all(lambda: process.descendants(os.getpid()), 0.1), flush=True)\n"
    )
    parent, pid = spawn(code)
    until(lambda: process.descendants(parent.pid) == [int(pid)])
    assert process.with_cookie(COOKIE) == [parent.pid]
    assert parent.communicate("end them\n")[0].strip() == "1"
    assert not is_alive(int(pid))


def test_those_who_have_ended_and_those_of_others_are_no_descendants(until):
    child = subprocess.Popen(["true"])
    until(lambda: not is_alive(child.pid))
    found = process.descendants(os.getpid())
    assert child.pid not in found
    assert os.getppid() not in found
    assert os.getpid() not in found
    child.wait()


def test_the_time_of_a_start_is_that_of_the_process():
    before = process.start_time(os.getpid())
    time.sleep(0.02)  # a clock tick of the kernel
    child = subprocess.Popen(["sleep", "600"])
    try:
        after = process.start_time(child.pid)
        assert before
        assert after
        assert int(after) > int(before)
    finally:
        child.kill()
        child.wait()


ADOPTS = """\
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from onbox.machine import process
process.adopt_orphans()
since = process.start_time(os.getpid())
own = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE)
daemon = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(600)"
silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
quits = subprocess.Popen([sys.executable, "-c", daemon], env={}, **silent)
quits.wait()
while len(found := process.orphans(since)) != 1:
    pass
assert found != [own.pid]
assert process.orphans(str(int(since) + 10**9)) == []
process.end_all(lambda: process.orphans(since), 5.0)
process.reap(found)
assert process.orphans(since) == [] and not os.path.exists(f"/proc/{found[0]}")
assert own.poll() is None
own.kill()
assert own.wait() == -9, "its exit status is its own"
print("as it should be")
"""


def test_orphans_that_came_to_us_are_told_from_our_own_children_and_reaped_by_number():
    words = [sys.executable, "-c", ADOPTS, str(Path(__file__).parents[3])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "as it should be\n", done.stderr


def test_a_process_that_ends_while_the_writers_are_looked_for_is_left_out(tmp_path, monkeypatch):
    log = tmp_path / "a.log"
    log.touch()
    for pid in ("11", "12"):
        (tmp_path / "proc" / pid / "fd").mkdir(parents=True)
        (tmp_path / "proc" / pid / "fd/1").symlink_to(log)
    monkeypatch.setattr(process, "_PROC", str(tmp_path / "proc"))
    assert sorted(process.writers(log)) == [11, 12]
    list_folder = os.listdir

    def ended(folder: str) -> list[str]:
        if folder.endswith("/11/fd"):
            raise FileNotFoundError(2, "No such file or directory", folder)
        return list_folder(folder)

    monkeypatch.setattr(os, "listdir", ended)
    assert process.writers(log) == [12]


# --- groups


LEAVES = """\
import os, sys, time
sys.path.insert(0, sys.argv[1])
from onbox.machine import cgroup
cgroup.enter(sys.argv[2])
os.fork() and os._exit(0)
os.setsid()
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def group() -> Iterator[str]:
    made = cgroup.create(lambda: "a-test-of-it")
    if made is None:
        pytest.skip("no cgroup may be made here")
    yield made
    cgroup.remove(made)


def test_who_has_left_its_session_is_a_member_still_and_a_group_with_members_stays(group, until):
    words = [sys.executable, "-c", LEAVES, str(Path(__file__).parents[3]), str(group)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        daemon = int(first.stdout.readline())
        assert cgroup.members(group) == [daemon]
        cgroup.remove(group)
        assert cgroup.create(lambda: "another") is not None, "which removes empty ones only"
        assert Path(group).is_dir()
        subprocess.run(["kill", "-9", str(daemon)], check=True)
    until(lambda: not cgroup.members(group))
    another = Path(group).with_name("boxcar-another")
    cgroup.remove(str(another))
    assert not another.exists()
    cgroup.remove(group)
    assert not Path(group).exists()


def test_where_no_group_may_be_made_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroup, "_ROOTS", (str(tmp_path / "none"),))
    assert cgroup.create(lambda: "x") is None
    assert cgroup.members(str(tmp_path / "none")) == []
    cgroup.enter(str(tmp_path / "none" / "there"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "/sys/fs/cgroup/boxcar-y",
        "/tmp/boxcar-x",
        "/sys/fs/cgroup/../boxcar-x",
        "/sys/fs/cgroup//boxcar-x",
        "/sys/fs/cgroups/boxcar-x",
    ],
)
def test_a_group_of_another_name_or_place_is_not_believed(text):
    assert cgroup.of_record(text, "x") is None


def test_a_group_that_was_written_down_is_found_again():
    path = "/sys/fs/cgroup/machine/boxcar-x"
    assert cgroup.of_record(path, "x") == path


def test_a_group_that_somebody_took_for_a_leftover_is_made_again(group, until):
    cgroup.remove(group)
    enter = "from onbox.machine import cgroup; cgroup.enter(sys.argv[2]); input()"
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {enter}"]
    words += [str(Path(__file__).parents[3]), str(group)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        until(lambda: cgroup.members(group) == [process.pid])
        process.communicate(b"\n")


def test_a_member_of_another_pid_namespace_is_nobody_to_be_signalled(tmp_path):
    # A signal to process 0 would end the agent that sends it.
    (tmp_path / "cgroup.procs").write_text("0\n4711\n0\n")
    assert cgroup.members(str(tmp_path)) == [4711]


def test_a_name_is_of_its_attempt_alone_and_that_of_an_older_release_is_known():
    cookies = (
        "/data/boxcar/r:a:1",
        "/data/boxcar/r:a:2",
        "/data/boxcar/r:b:1",
        "a:1",
        "1:a",
        "\udce9",
    )
    assert len({cgroup.name_of(cookie) for cookie in cookies}) == len(cookies)
    assert cgroup.older_name_of("a:1") == hashlib.sha256(b"a:1").hexdigest()[:12]


# --- giving way


_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}


def of_this_thread() -> int:
    """1 to 3, or 0 where none was set."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(_IOPRIO_GET[platform.machine()], 1, 0) >> 13


def in_a_thread() -> list[int]:
    found: list[int] = []

    def body() -> None:
        io_class.give_way()
        found.append(of_this_thread())
        io_class.be_usual()
        found.append(of_this_thread())

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return found


@pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in _IOPRIO_GET,
    reason="asks the kernel by a number that is known for Linux on two processors",
)
def test_one_thread_gives_way_and_is_in_turn_again_and_no_other_thread_is_changed():
    before = of_this_thread()
    gave_way, is_usual = in_a_thread()
    assert gave_way == 3
    # What was never set is 0, or since Linux 5.14 what follows from the niceness.
    assert is_usual in (0, 2)
    assert of_this_thread() == before


def test_where_the_number_is_not_known_nothing_happens(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    if platform.system() == "Linux":
        monkeypatch.setattr(ctypes.CDLL, "__getattr__", None)
    io_class.give_way()


# --- the terminal


SAYS = (
    "from onbox.machine import terminal; terminal.say('stopped: caf\\udce9'); raise SystemExit(3)"
)


def test_a_word_that_no_log_has_room_for_changes_nothing():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", SAYS], stderr=full, check=False)
    assert done.returncode == 3


def test_a_word_is_a_line_whatever_is_in_it():
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, check=False)
    assert done.stderr == b"stopped: caf\\udce9\n"
