from __future__ import annotations

from pathlib import Path

from boxcar.training.cache.memory_budget import choose, memory_left_bytes

GIB = 1 << 30
MEMINFO = "MemTotal: 9 kB\nMemAvailable: 104857600 kB\nCached: 7 kB\n"


def test_a_disk_with_room_is_mapped() -> None:
    choice = choose(5 * GIB, 5 * GIB, 100 * GIB)
    assert choice.mode == "mapped" and "5.37 GB in the page cache once" in choice.reason


def test_without_room_on_the_disk_samples_are_encoded_on_the_fly() -> None:
    choice = choose(5 * GIB, 5 * GIB, 4 * GIB)
    assert choice.mode == "on-the-fly"
    assert "5.64 GB" in choice.reason and "4.29 GB are free" in choice.reason
    assert choose(5 * GIB, 3 * GIB, 4 * GIB).mode == "mapped", "what is there needs no more room"


def box(root: Path, own: str) -> dict[str, Path]:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(MEMINFO)
    (root / "proc/self/cgroup").write_text(own)
    return {"cgroups": root / "cgroup", "proc": root / "proc"}


def limit(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_tightest_limit_above_this_process_counts_on_cgroup_v2(tmp_path: Path) -> None:
    where = box(tmp_path, "0::/slice/job\n")
    limit(tmp_path / "cgroup/slice/job", memory__max="max\n", memory__current="5\n")
    limit(tmp_path / "cgroup/slice", memory__max=f"{10 * GIB}\n", memory__current=f"{4 * GIB}\n")
    assert memory_left_bytes(**where) == 6 * GIB
    limit(tmp_path / "cgroup/slice", memory__stat=f"anon 1\ninactive_file {GIB}\n")
    assert memory_left_bytes(**where) == 7 * GIB


def test_cgroup_v1_is_read_where_the_container_sees_its_own_root(tmp_path: Path) -> None:
    where = box(tmp_path, "7:cpu:/\n4:memory:/docker/abc\n0::/\n")
    limit(
        tmp_path / "cgroup/memory",
        memory__limit_in_bytes=f"{8 * GIB}\n",
        memory__usage_in_bytes=f"{3 * GIB}\n",
        memory__stat=f"inactive_file 7\ntotal_inactive_file {2 * GIB}\n",
    )
    assert memory_left_bytes(**where) == 7 * GIB


def test_no_limit_is_the_memory_of_the_machine(tmp_path: Path) -> None:
    where = box(tmp_path, "4:memory:/\n0::/\n")
    limit(
        tmp_path / "cgroup/memory",
        memory__limit_in_bytes="9223372036854771712\n",
        memory__usage_in_bytes="1\n",
    )
    assert memory_left_bytes(**where) == 100 * GIB


def test_a_system_that_tells_nothing_gives_no_number(tmp_path: Path) -> None:
    assert memory_left_bytes(cgroups=tmp_path / "gone", proc=tmp_path / "gone") is None
