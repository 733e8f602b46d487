"""What a box says of its memory, its room and its GPUs."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import NoRoomError
from onbox.machine import gauges, gpus, oom_kills, room_wait
from onbox.machine.room_wait import RoomWait


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    _write(tmp_path, "memory/memory.usage_in_bytes", "1000\n")
    _write(tmp_path, "memory/memory.limit_in_bytes", "4000\n")
    _write(tmp_path, "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    return tmp_path


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    _write(tmp_path, "memory.current", "1000\n")
    _write(tmp_path, "memory.max", "4000\n")
    _write(tmp_path, "memory.events", "low 0\nhigh 1\nmax 9\noom 5\noom_kill 2\noom_group_kill 0\n")
    return tmp_path


def _write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_the_memory_of_both_kinds_of_container(v2):
    assert gauges.memory(v2) == {"memory_used_bytes": 1000, "memory_limit_bytes": 4000}


def test_the_memory_of_an_older_container(v1):
    assert gauges.memory(v1) == {"memory_used_bytes": 1000, "memory_limit_bytes": 4000}


def test_no_limit_is_no_number_however_it_is_spelled(v1, v2):
    _write(v2, "memory.max", "max\n")
    _write(v1, "memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert gauges.memory(v2) == {"memory_used_bytes": 1000}


def test_where_nobody_counts_nothing_is_said(tmp_path):
    assert gauges.memory(tmp_path / "none") == {}


def test_the_room_of_both_tiers_is_told_and_a_tier_that_is_away_is_left_out(tmp_path):
    numbers = gauges.read(tmp_path, tmp_path)
    assert numbers["scratch_free_bytes"] > 0
    assert numbers["durable_free_bytes"] > 0
    numbers = gauges.read(tmp_path, tmp_path / "away")
    assert "scratch_free_bytes" in numbers
    assert not any(name.startswith("durable") for name in numbers)


def test_the_share_of_the_cpu_is_told_by_both_kinds_of_container(v1, v2):
    _write(v2, "cpu.max", "150000 100000\n")
    assert gauges.cpu_quota_cores(v2) == 1.5
    (v2 / "cpu.max").unlink()
    (v1 / "cpu").mkdir()
    _write(v1, "cpu/cpu.cfs_quota_us", "50000\n")
    _write(v1, "cpu/cpu.cfs_period_us", "100000\n")
    assert gauges.cpu_quota_cores(v1) == 0.5


def test_a_cpu_that_is_not_limited_has_no_share_however_it_is_spelled(v1, v2):
    assert gauges.cpu_quota_cores(v1) is None
    _write(v2, "cpu.max", "max 100000\n")
    assert gauges.cpu_quota_cores(v2) is None
    (v2 / "cpu.max").unlink()
    (v1 / "cpu,cpuacct").mkdir()
    _write(v1, "cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    _write(v1, "cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    assert gauges.cpu_quota_cores(v1) is None


def test_the_room_of_a_disk_is_never_more_than_the_disk(tmp_path):
    room = gauges.room(tmp_path)
    assert 0 < room["free_bytes"] <= room["size_bytes"]
    assert room.get("free_inodes", 0) <= room.get("inodes", 0)


# --- kills for want of memory


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


# --- GPUs


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`driver("echo '[]'")`: a device is there, and the child that is asked does this."""

    def answer(text: str) -> None:
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        (tmp_path / "nvidiactl").touch()
        monkeypatch.setattr(sys, "executable", str(script))
        monkeypatch.setattr(gpus, "_DEVICES", (tmp_path / "nvidiactl",))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return answer


@pytest.mark.parametrize(
    ("visible", "count"),
    [("0", 1), ("0,1,3", 3), ("", 0), ("-1", 0), ("GPU-8932f937-d72c,", 1), (" 0 , 1 ", 2)],
)
def test_the_gpus_are_those_that_a_training_would_see(monkeypatch, visible, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.count() == count


def test_without_a_choice_they_are_those_that_the_driver_names(driver):
    driver("""echo '[{"name": "A100"}, {"name": "A100"}]'""")
    assert gpus.count() == 2


@pytest.mark.parametrize("text", ["echo nothing", "exit 1", "kill -9 $$", "echo '[]'; exit 3"])
def test_a_driver_that_breaks_whoever_asks_names_none(driver, text):
    driver(text)
    assert gpus.ask_child() == []


def test_a_driver_that_hangs_whoever_asks_holds_nobody_up(driver, monkeypatch):
    monkeypatch.setattr(gpus, "TIMEOUT_S", 0.2)
    driver("exec sleep 600")
    assert gpus.ask_child() == []  # the time limit of the test is the assertion


def test_without_a_device_nobody_is_asked(driver, monkeypatch, tmp_path):
    driver(f"touch {tmp_path}/asked")
    monkeypatch.setattr(gpus, "_DEVICES", (tmp_path / "none",))
    assert gpus.ask_child() == []
    assert not (tmp_path / "asked").exists()


def test_where_no_driver_is_there_are_no_rows():
    assert isinstance(gpus.rows(), list)


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`smi("echo ...")`: there is an nvidia-smi, and it does this."""

    def answer(text: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return answer


def test_the_drivers_own_program_names_them_where_the_library_does_not(smi):
    smi(
        "echo 'NVIDIA A100-SXM4-80GB, GPU-6f1a, 550.54.15, 7, 1024, 81920, 41'; "
        "echo 'Tesla T4, GPU-02bb, 550.54.15, [N/A], 0, 15360, 30'"
    )
    first, second = gpus.ask_nvidia_smi()
    assert first["name"] == "NVIDIA A100-SXM4-80GB"
    assert (first["uuid"], first["driver"]) == ("GPU-6f1a", "550.54.15")
    assert first["memory_total_bytes"] == 80 * 2**30
    assert first["memory_used_bytes"] == 2**30
    assert (first["utilization_percent"], first["temperature_c"]) == (7, 41)
    assert "utilization_percent" not in second


@pytest.mark.parametrize(
    "text",
    ["echo 'No devices were found'", "exit 9", "exec sleep 600", "echo 'a, b, c, d, e'; exit 1"],
)
def test_a_program_that_names_no_gpu_counts_none(smi, monkeypatch, text):
    monkeypatch.setattr(gpus, "TIMEOUT_S", 0.2)
    smi(text)
    assert gpus.ask_nvidia_smi() == []


# --- waiting for room


FULL = OSError(errno.ENOSPC, "No space left on device", "/")


class Clock:
    """Time passes only while somebody waits; it is also the waiting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.is_to_end = False
        self.warnings: list[str] = []
        monkeypatch.setattr(room_wait.time, "monotonic", lambda: self.now_s)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def patience(self, limit_s: float = 1800.0) -> RoomWait:
        return RoomWait(limit_s, self.wait, lambda: self.is_to_end, self.warnings.append)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def failing(*errors: BaseException) -> Callable[[], str]:
    """Raises these one after another; then it is done."""
    left: Iterator[BaseException] = iter(errors)

    def act() -> str:
        for error in left:
            raise error
        return "done"

    return act


def test_what_meets_a_full_disk_is_done_again_within_a_minute_of_room(clock):
    assert clock.patience().through(failing(FULL, NoRoomError("/data: 0 bytes are free"))) == "done"
    assert 0 < clock.now_s <= 60


def test_a_person_is_told_once_with_the_numbers(clock):
    clock.patience().through(failing(*[FULL] * 20))
    [warning] = clock.warnings
    assert "No space left on device" in warning
    assert "bytes and" in warning
    assert "30 minutes" in warning


def test_after_its_limit_it_raises_what_was_raised(clock):
    with pytest.raises(NoRoomError, match="0 bytes"):
        clock.patience().through(failing(*[NoRoomError("/data: 0 bytes are free")] * 1000))
    assert clock.now_s == 1800.0


def test_without_a_limit_it_raises_at_once_and_does_not_speak_of_waiting(clock):
    with pytest.raises(OSError, match="No space"):
        clock.patience(0.0).through(failing(FULL))
    assert (clock.now_s, clock.warnings) == (0.0, [])


def test_who_is_told_to_end_does_not_wait(clock):
    clock.is_to_end = True
    with pytest.raises(OSError, match="No space"):
        clock.patience().through(failing(FULL))
    assert clock.now_s == 0.0


def test_any_other_error_is_not_waited_for(clock):
    with pytest.raises(PermissionError):
        clock.patience().through(failing(PermissionError(errno.EACCES, "Permission denied", "/x")))
    assert clock.now_s == 0.0


def test_an_error_says_what_is_left_where_that_can_be_asked(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "file"))
    assert "bytes" in room_wait.reason(full)
    gone = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "no" / "file"))
    assert room_wait.reason(gone) == f"{gone.filename}: No space left on device"
    assert room_wait.reason(NoRoomError("here: 1 byte is free")) == "here: 1 byte is free"
