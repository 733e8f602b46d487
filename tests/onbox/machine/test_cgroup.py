from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onbox.machine import cgroup

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


def test_who_has_left_its_session_is_a_member_still_and_a_group_with_members_stays(
    group: str, until
) -> None:
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


def test_where_no_group_may_be_made_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_group_of_another_name_or_place_is_not_believed(text: str) -> None:
    assert cgroup.of_record(text, "x") is None


def test_a_group_that_was_written_down_is_found_again() -> None:
    path = "/sys/fs/cgroup/machine/boxcar-x"
    assert cgroup.of_record(path, "x") == path


def test_a_group_that_somebody_took_for_a_leftover_is_made_again(group: str, until) -> None:
    cgroup.remove(group)
    enter = "from onbox.machine import cgroup; cgroup.enter(sys.argv[2]); input()"
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {enter}"]
    words += [str(Path(__file__).parents[3]), str(group)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        until(lambda: cgroup.members(group) == [process.pid])
        process.communicate(b"\n")


def test_a_member_of_another_pid_namespace_is_nobody_to_be_signalled(tmp_path: Path) -> None:
    # A signal to process 0 would end the agent that sends it.
    (tmp_path / "cgroup.procs").write_text("0\n4711\n0\n")
    assert cgroup.members(str(tmp_path)) == [4711]


def test_a_name_is_of_its_attempt_alone_and_that_of_an_older_release_is_known() -> None:
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
