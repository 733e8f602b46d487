from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from boxcar.shared.disk import regular_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"as it was")
    return path


def test_a_file_of_the_same_size_and_time_has_another_stamp_once_it_was_written_to(
    file: Path,
) -> None:
    before, times = regular_file.stamp_of(file), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    time.sleep(0.02)  # a step of the clock that the disk takes its times from
    file.write_bytes(b"As it was")
    os.utime(file, ns=times)
    assert regular_file.stamp_of(file) != before == before[:]


def test_what_a_link_leads_to_is_another_thing_than_the_link(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    assert (
        regular_file.stamp_of(link)
        == regular_file.stamp_of(file)
        != regular_file.stamp_of_link(link)
    )
    file.unlink()
    assert regular_file.stamp_of_link(file) is None
    with pytest.raises(FileNotFoundError):
        regular_file.stamp_of(link)


def test_a_file_is_old_once_no_disk_gives_a_writer_the_same_time(file: Path) -> None:
    found = regular_file.stamp_of(file)
    now_ns = max(found[2], found[3])
    assert not regular_file.is_old(found, now_ns + 2_000_000_000)
    assert regular_file.is_old(found, now_ns + 4_000_000_000)
