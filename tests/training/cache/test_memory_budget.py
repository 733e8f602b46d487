from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from boxcar.training.cache import memory_budget
from boxcar.training.cache.memory_budget import Budget, choose, measure

GIB = 1 << 30
MEMINFO = "MemTotal: 9 kB\nMemAvailable: 104857600 kB\nCached: 7 kB\n"

ROOMY = Budget(
    ranks_on_node=8,
    disk_free_bytes=100 * GIB,
    memory_left_bytes=100 * GIB,
    shm_free_bytes=64 << 20,
)


def test_a_local_disk_is_mapped_however_much_memory_there_is() -> None:
    choice = choose(5 * GIB, 5 * GIB, ROOMY)
    assert choice.mode == "mapped"
    assert "5 GiB" in choice.reason and "8 x 5 GiB" in choice.reason
    assert "/dev/shm free 64 MiB" in choice.reason


def test_without_room_on_the_disk_samples_are_encoded_on_the_fly() -> None:
    tight = dataclasses.replace(ROOMY, disk_free_bytes=4 * GIB)
    choice = choose(5 * GIB, 5 * GIB, tight)
    assert choice.mode == "on-the-fly"
    assert "5.25 GiB" in choice.reason and "4 GiB are free" in choice.reason
    assert choose(5 * GIB, 3 * GIB, tight).mode == "mapped", "what is there needs no more room"


def test_a_remote_folder_is_preloaded_only_where_all_copies_fit_with_room() -> None:
    remote = dataclasses.replace(ROOMY, is_remote=True)
    assert choose(6 * GIB, 0, remote).mode == "preloaded"
    too_large = choose(7 * GIB, 0, remote)
    assert too_large.mode == "mapped" and "do not fit" in too_large.reason
    one_rank = dataclasses.replace(remote, ranks_on_node=1)
    assert choose(48 * GIB, 0, one_rank).mode == "preloaded"


def test_what_dev_shm_may_still_take_is_no_room_for_copies() -> None:
    remote = dataclasses.replace(ROOMY, is_remote=True, shm_free_bytes=90 * GIB)
    assert choose(6 * GIB, 0, remote).mode == "mapped"


def test_nothing_is_preloaded_where_nobody_tells_the_memory() -> None:
    unknown = dataclasses.replace(ROOMY, is_remote=True, memory_left_bytes=None)
    assert choose(1, 0, unknown).mode == "mapped"


def box(root: Path, own: str, mounts: str = "") -> dict[str, Path]:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(MEMINFO)
    (root / "proc/self/cgroup").write_text(own)
    (root / "proc/self/mountinfo").write_text(mounts)
    return {"cgroups": root / "cgroup", "proc": root / "proc", "shm": root}


def limit(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_tightest_limit_above_this_process_counts_on_cgroup_v2(tmp_path: Path) -> None:
    where = box(tmp_path, "0::/slice/job\n")
    limit(tmp_path / "cgroup/slice/job", memory__max="max\n", memory__current="5\n")
    limit(tmp_path / "cgroup/slice", memory__max=f"{10 * GIB}\n", memory__current=f"{4 * GIB}\n")
    assert measure(tmp_path, 2, **where).memory_left_bytes == 6 * GIB
    limit(tmp_path / "cgroup/slice", memory__stat=f"anon 1\ninactive_file {GIB}\n")
    assert measure(tmp_path, 2, **where).memory_left_bytes == 7 * GIB


def test_cgroup_v1_is_read_where_the_container_sees_its_own_root(tmp_path: Path) -> None:
    where = box(tmp_path, "7:cpu:/\n4:memory:/docker/abc\n0::/\n")
    limit(
        tmp_path / "cgroup/memory",
        memory__limit_in_bytes=f"{8 * GIB}\n",
        memory__usage_in_bytes=f"{3 * GIB}\n",
        memory__stat=f"inactive_file 7\ntotal_inactive_file {2 * GIB}\n",
    )
    assert measure(tmp_path, 2, **where).memory_left_bytes == 7 * GIB


def test_no_limit_is_the_memory_of_the_machine(tmp_path: Path) -> None:
    where = box(tmp_path, "4:memory:/\n0::/\n")
    limit(
        tmp_path / "cgroup/memory",
        memory__limit_in_bytes="9223372036854771712\n",
        memory__usage_in_bytes="1\n",
    )
    assert measure(tmp_path, 2, **where).memory_left_bytes == 100 * GIB


def test_a_system_that_tells_nothing_gives_no_numbers(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    found = measure(tmp_path, 2, cgroups=gone, proc=gone, shm=gone)
    assert (found.memory_left_bytes, found.shm_free_bytes, found.is_remote) == (None, 0, False)
    assert found.disk_free_bytes > 0


@pytest.mark.parametrize(
    ("kind", "is_remote"),
    [("nfs4", True), ("fuse.sshfs", True), ("ext4", False), ("fuseblk", False)],
)
def test_the_mount_nearest_to_the_folder_says_whether_it_is_remote(
    tmp_path: Path, kind: str, is_remote: bool
) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    spelled = str(folder).replace(" ", "\\040")
    mounts = (
        f"20 1 0:5 / {spelled} rw - xfs /dev/b rw\n"
        f"21 1 0:6 / {spelled} rw shared:1 - {kind} server:/x rw\n"
        "22 1 0:7 / / rw - overlay overlay rw\n"
    )
    where = box(tmp_path, "0::/\n", mounts)
    assert measure(folder, 1, **where).is_remote is is_remote


def test_sizes_are_spelled_for_people() -> None:
    sizes = (0, 1000, 1 << 20, 317 << 20, 1010 << 20, 6_650_000_000)
    said = [memory_budget.spelled(size) for size in sizes]
    assert said == ["0 B", "1000 B", "1 MiB", "317 MiB", "1010 MiB", "6.19 GiB"]
