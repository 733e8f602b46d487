from __future__ import annotations

from pathlib import Path

import pytest

from onbox.machine import oom_kills


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    _write(tmp_path, "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    return tmp_path


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    _write(tmp_path, "memory.events", "low 0\nhigh 1\nmax 9\noom 5\noom_kill 2\noom_group_kill 0\n")
    return tmp_path


def _write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_kills_for_want_of_memory_are_counted_by_both_kinds(v2):
    assert oom_kills.count(v2) == 2
    (v2 / "memory.events").unlink()
    assert oom_kills.count(v2) == 0


def test_kills_for_want_of_memory_in_an_older_container(v1):
    assert oom_kills.count(v1) == 3


def test_kills_in_nested_groups_are_counted(v1, tmp_path):
    """Of version 1 each group counts for itself: the agent's own, and one that a script made."""
    own = tmp_path / "own"
    own.write_text("4:memory:/slice/agent\n0::/\n")
    _write(v1, "memory/slice/agent/memory.oom_control", "oom_kill 1\n")
    _write(v1, "memory/slice/agent/step_0/memory.oom_control", "under_oom 0\noom_kill 4\n")
    assert oom_kills.count(v1, own) == 5


def test_kills_where_only_the_own_group_of_version_2_counts(tmp_path):
    """The topmost group of a machine has no such file."""
    own = tmp_path / "own"
    own.write_text("0::/user.slice/agent.service\n")
    _write(tmp_path, "user.slice/agent.service/memory.events", "oom 3\noom_kill 2\n")
    assert oom_kills.count(tmp_path, own) == 2


# As a kernel 6.12 wrote them, in a container's own namespace: a process was killed in step_0/deep
# for step_0's limit, and then one in the agent's own group for that group's.
_KERNELS_OWN = {
    ".": "low 0\nhigh 0\nmax 88\noom 2\noom_kill 2\noom_group_kill 0\n",
    "agent": "low 0\nhigh 0\nmax 51\noom 1\noom_kill 1\noom_group_kill 0\n",
    "step_0": "low 0\nhigh 0\nmax 37\noom 1\noom_kill 1\noom_group_kill 0\n",
    "step_0/deep": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n",
}


def test_kills_in_nested_groups_of_version_2_are_counted_as_the_kernel_writes_them(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/agent\n")
    for group, text in _KERNELS_OWN.items():
        _write(tmp_path, f"{group}/memory.events", text)
    assert oom_kills.count(tmp_path, own) == 2


def test_a_path_that_is_the_hosts_is_not_looked_for(v1, tmp_path):
    own = tmp_path / "own"
    own.write_text("4:memory:/docker/4711\n")
    assert oom_kills.count(v1, own) == 3


@pytest.mark.parametrize("text", ["", "oom_kill\n", "oom_kill many\n", "oom 7\n"])
def test_a_counter_that_cannot_be_read_counts_nothing(v2, text):
    _write(v2, "memory.events", text)
    assert oom_kills.count(v2) == 0


def test_where_nobody_counts_there_were_none(tmp_path):
    assert oom_kills.count(tmp_path / "none") == 0
