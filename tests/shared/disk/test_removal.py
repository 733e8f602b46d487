from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import mounts, regular_file


def test_a_link_is_removed_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/a").touch()
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone/inner").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for name in ("gone", "link", "never there"):
        regular_file.remove(tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "kept"]


def test_a_folder_with_a_disk_mounted_in_it_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data/s3").mkdir(parents=True)
    (tmp_path / "data/s3/mine").touch()
    monkeypatch.setattr(mounts, "points_below", lambda folder: [f"{folder}/s3"])
    with pytest.raises(OSError, match=r"a disk is mounted there: unmount it: '.*data/s3'"):
        regular_file.remove(tmp_path / "data")
    assert (tmp_path / "data/s3/mine").exists()


def test_folders_that_a_script_made_read_only_are_removed_all_the_same(tmp_path: Path) -> None:
    deep = tmp_path / "top/middle/deep"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    for folder in (deep, deep.parent, tmp_path / "top"):
        folder.chmod(0o555)
    regular_file.open_up(tmp_path / "top")
    assert all(path.stat().st_mode & 0o700 == 0o700 for path in (deep, deep.parent))
    regular_file.remove(tmp_path / "top")
    assert not (tmp_path / "top").exists()
