from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import atomic, mounts, tree_sync
from boxcar.shared.disk.mounts import Mount
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
def test_a_disk_of_this_machine_has_one_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    on(monkeypatch, file_system)
    assert has_one_sync(tmp_path, "5.8.0-1-generic")
    assert has_one_sync(tmp_path, "6.18.44-x")


@pytest.mark.parametrize("release", ["5.7.19", "4.18.0-553.el8", "3.10", "strange"])
def test_a_kernel_that_reports_no_error_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    on(monkeypatch, "ext4")
    assert not has_one_sync(tmp_path, release)


@pytest.mark.parametrize("file_system", ["nfs4", "fuse", "fuse.rclone", "overlay", "tmpfs", "9p"])
def test_where_a_sync_may_do_nothing_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    on(monkeypatch, file_system)
    assert not has_one_sync(tmp_path, "6.18.0")


def test_what_others_have_unwritten_counts_and_ones_own_does_not(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemFree: 1 kB\nDirty:  1000000 kB\nWriteback:  24000 kB\n")
    assert not is_quiet(0, meminfo)
    assert is_quiet(1_000_000_000, meminfo)
    assert not is_quiet(0, tmp_path / "no such file")


@pytest.mark.parametrize("has_one", [True, False])
def test_each_file_and_folder_is_synced_one_way_or_the_other(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch, has_one: bool
) -> None:
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


def test_a_file_that_cannot_be_synced_is_raised(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_sync, "has_one_sync", lambda _folder: False)
    files[3].unlink()
    with TreeSync(tmp_path) as sync, pytest.raises(FileNotFoundError):
        sync.make_durable(files)


def test_the_one_sync_is_real_where_there_is_one(tmp_path: Path, files: list[Path]) -> None:
    if not has_one_sync(tmp_path):
        pytest.skip("no ext4, xfs or btrfs here, or an older kernel")
    with TreeSync(tmp_path) as sync:
        tree_sync._sync_file_system(sync._fd, tmp_path)
    with pytest.raises(OSError):
        tree_sync._sync_file_system(-1, tmp_path)


def test_folders_are_made_and_those_with_a_new_name_are_named(tmp_path: Path) -> None:
    changed = make_folders([tmp_path / "a" / "b", tmp_path / "a" / "c"])
    assert (tmp_path / "a" / "c").is_dir()
    assert changed == {tmp_path, tmp_path / "a"}
