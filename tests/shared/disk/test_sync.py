"""What is told to the disk, and which disk it is."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxcar.shared.disk import atomic, digest, mounts, sink, tree_sync
from boxcar.shared.disk.mounts import Mount, mount_of, points_below
from boxcar.shared.disk.tree_sync import TreeSync, has_one_sync, is_quiet, make_folders

MANY = 6


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"f{number}" for number in range(MANY)]
    for file in found:
        file.write_text(file.name)
    return found


def on(monkeypatch: pytest.MonkeyPatch, file_system: str) -> None:
    monkeypatch.setattr(mounts, "mount_of", lambda _path: Mount("/", file_system))


@pytest.mark.parametrize("file_system", ["ext4", "xfs", "btrfs"])
def test_a_disk_of_this_machine_has_one_sync(tmp_path, monkeypatch, file_system):
    on(monkeypatch, file_system)
    assert has_one_sync(tmp_path, "5.8.0-1-generic")
    assert has_one_sync(tmp_path, "6.18.44-x")


@pytest.mark.parametrize("release", ["5.7.19", "4.18.0-553.el8", "3.10", "strange"])
def test_a_kernel_that_reports_no_error_has_none(tmp_path, monkeypatch, release):
    on(monkeypatch, "ext4")
    assert not has_one_sync(tmp_path, release)


@pytest.mark.parametrize("file_system", ["nfs4", "fuse", "fuse.rclone", "overlay", "tmpfs", "9p"])
def test_where_a_sync_may_do_nothing_there_is_none(tmp_path, monkeypatch, file_system):
    on(monkeypatch, file_system)
    assert not has_one_sync(tmp_path, "6.18.0")


def test_what_others_have_unwritten_counts_and_ones_own_does_not(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemFree: 1 kB\nDirty:  1000000 kB\nWriteback:  24000 kB\n")
    assert not is_quiet(0, meminfo)
    assert is_quiet(1_000_000_000, meminfo)
    assert not is_quiet(0, tmp_path / "no such file")


@pytest.mark.parametrize("has_one", [True, False])
def test_each_file_and_folder_is_synced_one_way_or_the_other(tmp_path, files, monkeypatch, has_one):
    by_one: list[Path] = []
    each: list[Path] = []
    monkeypatch.setattr(tree_sync, "has_one_sync", lambda _folder: has_one)
    monkeypatch.setattr(tree_sync, "is_quiet", lambda _size_bytes: True)
    monkeypatch.setattr(tree_sync, "_sync_file_system", lambda _fd, folder: by_one.append(folder))
    monkeypatch.setattr(atomic, "sync_file", each.append)
    monkeypatch.setattr(atomic, "sync_folder", each.append)
    with TreeSync(tmp_path) as sync:
        sync.make_durable(files, [tmp_path])
    assert by_one == ([tmp_path] if has_one else [])
    assert sorted(each) == ([] if has_one else sorted([*files, tmp_path]))


def test_a_file_that_cannot_be_synced_is_raised(tmp_path, files, monkeypatch):
    monkeypatch.setattr(tree_sync, "has_one_sync", lambda _folder: False)
    files[3].unlink()
    with TreeSync(tmp_path) as sync, pytest.raises(FileNotFoundError):
        sync.make_durable(files)


def test_the_one_sync_is_real_where_there_is_one(tmp_path, files):
    if not has_one_sync(tmp_path):
        pytest.skip("no ext4, xfs or btrfs here, or an older kernel")
    with TreeSync(tmp_path) as sync:
        tree_sync._sync_file_system(sync._fd, tmp_path)
    with pytest.raises(OSError):
        tree_sync._sync_file_system(-1, tmp_path)


def test_folders_are_made_and_those_with_a_new_name_are_named(tmp_path):
    changed = make_folders([tmp_path / "a" / "b", tmp_path / "a" / "c"])
    assert (tmp_path / "a" / "c").is_dir()
    assert changed == {tmp_path, tmp_path / "a"}


# --- while a file is written


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What the disk is told, with the first byte and the last but one."""
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(sink, "PART_BYTES", 100)
    monkeypatch.setattr(
        sink, "begin", lambda _, start, size: told.append(("begin", start, start + size))
    )
    monkeypatch.setattr(
        sink, "wait", lambda _, start, size: told.append(("wait", start, start + size))
    )
    monkeypatch.setattr(
        digest, "forget_cached_pages", lambda _, start, end: told.append(("forget", start, end))
    )
    return told


def test_the_disk_is_busy_with_a_part_while_the_one_before_is_waited_for(tmp_path, seen):
    data, fd = os.urandom(395), os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    one = sink.Sink(fd, leaves_room=True)
    for start, end in ((0, 30), (30, 350), (350, 395)):
        one.write(memoryview(data)[start:end])
    os.close(fd)
    assert (tmp_path / "x").read_bytes() == data
    assert seen == [
        ("begin", 0, 130),
        ("begin", 130, 230), ("wait", 0, 130), ("forget", 0, 130),
        ("begin", 230, 330), ("wait", 130, 230), ("forget", 130, 230),
    ]  # fmt: skip


def test_a_save_that_a_training_waits_for_begins_each_part_and_waits_for_none(tmp_path, seen):
    with (tmp_path / "x").open("wb") as file:
        sink.Sink(file.fileno()).write(memoryview(bytes(350)))
    assert seen == [("begin", 0, 100), ("begin", 100, 200), ("begin", 200, 300)]


def test_what_the_disk_could_not_write_of_an_earlier_part_is_raised(tmp_path, seen, monkeypatch):
    def broken(*_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(sink, "wait", broken)
    with (tmp_path / "x").open("wb") as file, pytest.raises(OSError, match="Input/output"):
        sink.Sink(file.fileno(), leaves_room=True).write(memoryview(bytes(200)))


def test_a_write_that_the_system_cuts_short_is_gone_on_with(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    fd = os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    sink.Sink(fd).write(memoryview(bytes(range(100))))
    os.close(fd)
    assert (tmp_path / "x").read_bytes() == bytes(range(100))


# --- a part of a file


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "x", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"1" * 10_000)
    yield fd
    os.close(fd)


def answer(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(*_: int) -> int:
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(sink, "_function", lambda: function)


def test_a_part_is_written_and_the_file_is_as_it_was(fd):
    sink.begin(fd, 0, 5_000)
    sink.wait(fd, 0, 5_000)
    assert os.pread(fd, 20_000, 0) == b"1" * 10_000


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EBADF])
def test_what_could_not_be_written_is_raised_because_no_fsync_tells_of_it_again(
    fd, number, monkeypatch
):
    answer(number, monkeypatch)
    with pytest.raises(OSError, match=os.strerror(number)):
        sink.wait(fd, 0, 5_000)


def test_what_the_system_says_of_a_wrong_descriptor_is_raised():
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        sink.begin(-1, 0, 1)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_where_a_file_system_has_no_such_call_nobody_waits(fd, number, monkeypatch):
    answer(number, monkeypatch)
    sink.begin(fd, 0, 5_000)
    sink.wait(fd, 0, 5_000)


def test_where_a_system_has_no_such_call_nobody_waits(fd, monkeypatch):
    monkeypatch.setattr(sink, "_function", lambda: None)
    sink.wait(fd, 0, 5_000)


def test_a_pipe_has_no_parts():
    ends = os.pipe()
    sink.begin(ends[1], 0, 1)
    for end in ends:
        os.close(end)


# --- which disk it is


TABLE = r"""22 27 0:21 / /proc rw - proc proc rw
27 1 254:0 / / rw,relatime - overlay overlay rw
30 27 0:30 / {root}/data rw,relatime shared:7 master:1 - ext4 /dev/sdb rw
31 27 0:31 / {root}/data/two\040words rw - nfs4 server:/x rw
32 27 0:32 / {root}/data rw - xfs /dev/sdc rw
a line that is none
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for name in ("data/two words", "database"):
        (tmp_path / name).mkdir(parents=True)
    path = tmp_path / "mountinfo"
    path.write_text(TABLE.replace("{root}", str(tmp_path.resolve())))
    return path


def test_the_deepest_mount_counts_and_its_name_may_have_spaces(tmp_path, table):
    found = mount_of(tmp_path / "data/two words", table)
    assert found == Mount(str(tmp_path.resolve() / "data/two words"), "nfs4")


def test_of_two_at_one_point_the_later_one_counts(tmp_path, table):
    found = mount_of(tmp_path / "data", table)
    assert found is not None
    assert found.file_system == "xfs"


def test_a_name_that_only_begins_alike_lies_on_the_system_disk(tmp_path, table):
    assert mount_of(tmp_path / "database", table) == Mount("/", "overlay")


def test_a_link_is_followed_to_where_it_leads(tmp_path, table):
    (tmp_path / "short").symlink_to("data")
    found = mount_of(tmp_path / "short", table)
    assert found is not None
    assert found.file_system == "xfs"


def test_a_system_that_does_not_tell_is_believed_nothing(tmp_path):
    assert mount_of(tmp_path, tmp_path / "none") is None


def test_this_machine_names_the_mount_of_its_root():
    found = mount_of(Path("/"))
    assert found is not None
    assert found.point == "/"


def test_a_name_that_is_no_utf_8_and_a_line_that_is_cut_are_no_trouble(tmp_path):
    table = tmp_path / "mountinfo"
    root = bytes(tmp_path.resolve())
    lines = [
        b"30 27 0:30 / /mnt/\xff\xfe rw - nfs4 x rw",
        b"31 27",
        b"",
        b" - ",
        b"32 27 0:1 / " + root,
    ]
    lines += [b"33 27 0:2 / " + root + b" rw - ext4 x rw", b"34 27 0:2 / " + root + b" rw - "]
    table.write_bytes(b"\n".join(lines))
    assert mount_of(tmp_path, table) == Mount(str(tmp_path.resolve()), "ext4")


@pytest.mark.parametrize(
    ("file_system", "is_remote"),
    [
        ("nfs4", True),
        ("fuse.juicefs", True),
        ("fuse", True),
        ("fuseblk", False),
        ("ext4", False),
        ("tmpfs", False),
        ("overlay", False),
    ],
)
def test_the_type_tells_whether_other_hosts_may_write_there(file_system, is_remote):
    assert Mount("/", file_system).is_remote is is_remote


def test_what_is_mounted_at_a_folder_or_below_it_is_found(tmp_path, table):
    top = str(tmp_path.resolve())
    assert set(points_below(tmp_path, table)) == {f"{top}/data", f"{top}/data/two words"}
    assert points_below(tmp_path / "database", table) == []
    assert points_below(tmp_path, tmp_path / "none") == []
