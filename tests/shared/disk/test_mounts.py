from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk.mounts import Mount, mount_of, points_below

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


def test_a_name_that_is_no_utf_8_and_a_line_that_is_cut_are_no_trouble(tmp_path: Path) -> None:
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
def test_the_type_tells_whether_other_hosts_may_write_there(
    file_system: str, is_remote: bool
) -> None:
    assert Mount("/", file_system).is_remote is is_remote


def test_what_is_mounted_at_a_folder_or_below_it_is_found(tmp_path, table):
    top = str(tmp_path.resolve())
    assert set(points_below(tmp_path, table)) == {f"{top}/data", f"{top}/data/two words"}
    assert points_below(tmp_path / "database", table) == []
    assert points_below(tmp_path, tmp_path / "none") == []
