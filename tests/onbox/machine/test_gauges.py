from __future__ import annotations

from pathlib import Path

import pytest

from onbox.machine import gauges


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    _write(tmp_path, "memory/memory.usage_in_bytes", "1000\n")
    _write(tmp_path, "memory/memory.limit_in_bytes", "4000\n")
    return tmp_path


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    _write(tmp_path, "memory.current", "1000\n")
    _write(tmp_path, "memory.max", "4000\n")
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
