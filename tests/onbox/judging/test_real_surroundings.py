"""Failures that a box causes, made here: a group without memory, small disks, /dev/shm.

As root on Linux; what this machine does not allow is skipped with the reason.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from failing import end_of
from waiting import until

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(os.geteuid() != 0, reason="groups and mounts of one's own need root"),
]

_MEMORY = Path("/sys/fs/cgroup/memory")
_LIMIT_BYTES = 300 * 1024 * 1024
_EATS = """
kept = []
while True:
    kept.append(bytearray(os.urandom(1 << 20) * 16))
"""


def _own_group() -> Path:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    [path] = [line.split(":", 2)[2] for line in lines if line.split(":")[1] == "memory"]
    return _MEMORY / path.lstrip("/")


@pytest.fixture
def group() -> Iterator[Path]:
    """A group with little memory, of whichever version this machine's memory controller has."""
    if (_MEMORY / "memory.limit_in_bytes").exists():
        top, limit = _own_group(), "memory.limit_in_bytes"
    elif "memory" in _controllers():
        top, limit = _MEMORY.parent, "memory.max"
    else:
        pytest.skip("this machine has no memory controller for groups of one's own")
    made = top / f"boxcar-test-{uuid.uuid4().hex[:8]}"
    try:
        made.mkdir()
        (made / limit).write_text(str(_LIMIT_BYTES))
    except OSError as error:
        pytest.skip(f"no group can be made here: {error}")
    yield made
    until(lambda: _is_removed(made))


def _controllers() -> list[str]:
    with contextlib.suppress(OSError):
        return (_MEMORY.parent / "cgroup.subtree_control").read_text().split()
    return []


def _is_removed(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def test_a_cell_that_is_killed_for_memory_in_the_boxs_own_group_is_never_tried_again(
    make_run, group
):
    enter = ("sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh")
    end = end_of(make_run, _EATS, enter=enter, is_hurried=False)
    assert (end.failure, end.course, end.state) == ("U9", "OUT_OF_MEMORY", "failed"), end


def test_so_it_is_in_a_group_below_the_boxs_own(make_run, group):
    """As a scheduler or a script makes one: of version 1 the outer group does not count it."""
    fails = f"Path('{group}/cgroup.procs').write_text(str(os.getpid()))\n{_EATS.strip()}"
    end = end_of(make_run, fails)
    assert (end.failure, end.course, end.state) == ("U9", "OUT_OF_MEMORY", "failed"), end


def _small(options: str, where: str) -> tuple[str, ...]:
    mount = f'mount -t tmpfs -o {options} tmpfs "{where}" && exec "$@"'
    return ("unshare", "-m", "sh", "-c", mount, "sh")


_WORKERS = """
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 9

    def __getitem__(self, index):
        return torch.zeros(1 << 22)

list(torch.utils.data.DataLoader(Data(), num_workers=1))
"""


def test_a_dev_shm_that_is_too_small_for_the_loader_is_named(make_run):
    end = end_of(make_run, _WORKERS, enter=_small("size=1m", "/dev/shm"))
    assert (end.failure, end.course, end.state) == ("DP15", "FIX_CONFIG", "failed"), end


def test_a_mapped_file_on_a_dev_shm_that_is_full_is_a_bus_error(make_run):
    fails = """
    import mmap
    with open("/dev/shm/mapped", "w+b") as file:
        file.truncate(1 << 24)
        mapped = mmap.mmap(file.fileno(), 0)
        for at in range(0, 1 << 24, 4096):
            mapped[at] = 1
    """
    end = end_of(make_run, fails, enter=_small("size=1m", "/dev/shm"))
    assert (end.failure, end.course, end.state) == ("BUS", "FIX_CONFIG", "failed"), end


@pytest.mark.parametrize("options", ["size=1m", "size=9m,nr_inodes=50"])
def test_a_disk_of_the_scripts_own_without_bytes_or_inodes_is_named(make_run, tmp_path, options):
    other = tmp_path / "other"
    other.mkdir()
    fails = f"""
    for number in range(1000):
        Path("{other}", str(number)).write_bytes(bytes(9999))
    """
    end = end_of(make_run, fails, enter=_small(options, str(other)))
    assert end.course == "FREE_SPACE", end
    assert end.failure in ("DISK", "U7b"), end  # below /tmp it is taken for the system disk's


def test_a_folder_that_may_only_be_read_is_named(make_run, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    fails = f"Path('{other}/x').write_text('x')"
    end = end_of(make_run, fails, enter=_small("ro", str(other)))
    assert (end.failure, end.course) == ("ROFS", "OTHER_BOX"), end
