from __future__ import annotations

from pathlib import Path

import pytest

from onbox.machine.mounts import Mount, mount_of

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
