from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest
from waiting import until

from boxcar.shared.disk import lock
from onbox.cell.wrapper import prepared
from onbox.cell.wrapper.launcher import Launcher
from onbox.cell.wrapper.prepared import Prepared
from onbox.cell.wrapper.waiting import TORCHRUN
from onbox.machine import cgroup, process

SCRIPT = """\
import json, os, sys
group = open("/proc/self/cgroup").read()
print(json.dumps({"env": dict(os.environ), "group": group, "session": os.getsid(0) == os.getpid()}))
sys.exit(7)
"""
OF_POSIX = (1 << 31) - 1


KINDS = ("started", "prepared", "loaded", "not loaded")


@pytest.fixture(params=KINDS)
def made(request, tmp_path):
    """A launcher of each kind: what is none of torchrun's is started anew by what was loaded."""
    staged = request.getfixturevalue("staged") if "loaded" in request.param else tmp_path
    python = sys.executable if request.param == "loaded" else "/no/such/python"
    meanwhile = (python, str(staged / TORCHRUN), "0") if "loaded" in request.param else ()
    cookie = f"{tmp_path}:cell:1"
    none = tmp_path / "none"
    none.mkdir()
    (none / "torch.py").write_text("raise ImportError")

    def make(*words):
        if request.param == "started":
            return Launcher(words, cookie)
        one = Prepared(cookie, meanwhile, {"PYTHONPATH": str(none)})
        one.argv = words
        return one

    return make


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ignored_in(status: str) -> int:
    return int(status.partition("SigIgn:")[2].split()[0], 16)


def test_it_becomes_the_launcher_in_its_group_with_this_environment_and_log(made, tmp_path):
    log = tmp_path / "log"
    one = made(sys.executable, "-c", SCRIPT)
    environ = {"A": "b=c\nd", "É": "\udce9", "LONG": "x" * 100_000}
    with log.open("ab") as file:
        assert ended(one.become(environ, file.fileno())) == 7
    found = json.loads(log.read_text())
    assert found["env"].items() >= environ.items()
    assert found["session"]
    if one.group:
        assert Path(one.group).name in found["group"]
        cgroup.remove(one.group)  # another one's wrapper may have: it is empty


def test_an_empty_word_is_one(made, tmp_path):
    with (tmp_path / "log").open("w+b") as file:
        one = made(sys.executable, "-c", "import sys; print(sys.argv[1:])", "", "a b", "")
        assert ended(one.become({}, file.fileno())) == 0
    assert (tmp_path / "log").read_text() == "['', 'a b', '']\n"


def test_no_signal_is_ignored_in_it(made, tmp_path):
    with (tmp_path / "log").open("w+b") as file:
        assert ended(made("grep", "SigIgn", "/proc/self/status").become({}, file.fileno())) == 0
    # But for those of the C library, and those that who has started the tests (nohup) ignores.
    ignored = ignored_in((tmp_path / "log").read_text())
    assert ignored & OF_POSIX & ~ignored_in(Path("/proc/self/status").read_text()) == 0


def test_who_has_its_log_holds_the_lock_of_it(made, tmp_path):
    log = tmp_path / "log"
    one = made("sleep", "3600")
    fd = lock.try_hold(log)
    pid = one.become({"PATH": os.environ["PATH"]}, fd)
    os.close(fd)
    name = Path(f"/proc/{pid}/comm")
    until(lambda: name.read_text() == "sleep\n")
    assert lock.is_held(log)
    os.kill(pid, 9)
    assert ended(pid) == -9
    assert not lock.is_held(log)


def test_a_program_that_is_not_there_is_said_in_the_log(made, tmp_path):
    with (tmp_path / "log").open("w+b") as file:
        assert ended(made("/no/such/program").become({}, file.fileno())) == 127
    assert (tmp_path / "log").read_text() == "/no/such/program: No such file or directory\n"


def test_one_to_which_half_of_an_environment_was_said_starts_nothing(tmp_path):
    one = Prepared(f"{tmp_path}:cell:1")
    half = b"\0".join([b"2", b"touch", os.fsencode(tmp_path / "started"), b"PATH=/bin:/usr/bin"])
    with (tmp_path / "log").open("ab") as file:
        socket.send_fds(one._ours, [b"\0"], [file.fileno()])
        one._ours.sendall((len(half) + 1).to_bytes(8, "big") + half)
    one._ours.close()
    assert ended(one._pid) == 127
    assert not (tmp_path / "started").exists()
    Launcher.end(one)


def test_one_that_was_killed_while_it_waited_is_started_anew(made, tmp_path):
    one = made("sh", "-c", "exit 3")
    if isinstance(one, Prepared):
        os.kill(one._pid, 9)
    with (tmp_path / "log").open("w+b") as file:
        assert ended(one.become({"PATH": os.environ["PATH"]}, file.fileno())) == 3


def test_one_that_does_not_answer_is_started_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(prepared, "_TAKEN_WITHIN_S", 0.05)
    one = Prepared(f"{tmp_path}:cell:1", ("sh", "-c", "exec sleep 3600"), dict(os.environ))
    one.argv, before = ("sh", "-c", "exit 3"), one._pid
    with (tmp_path / "log").open("w+b") as file:
        assert ended(one.become(dict(os.environ), file.fileno())) == 3
    assert process.start_time(before) is None


def test_one_that_is_not_needed_leaves_no_process_and_no_group(made):
    before = process.descendants(os.getpid())
    one = made("sleep", "3600")
    one.end()
    assert process.descendants(os.getpid()) == before
    assert one.group is None or not Path(one.group).exists()
