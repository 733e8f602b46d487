"""What the kernel tells of folders that others write into, and where it cannot be asked."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from boxcar.shared.disk import mounts
from boxcar.shared.disk.mounts import Mount
from onbox.machine import folder_watch
from onbox.machine.folder_watch import FolderWatch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.py", "lib/b.py", "lib/deep/c.py"):
        (tmp_path / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "code" / name).write_text("x = 1\n")
    return tmp_path / "code"


@pytest.fixture
def watch(root: Path) -> FolderWatch:
    one = FolderWatch()
    assert one.told(root) is None
    one.begin(root, {"lib", "lib/deep"})
    if one.told(root) is None:
        pytest.skip("no inotify watches are left on this machine")
    return one


def mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"y"


CHANGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "nothing": (lambda root: (root / "a.py").read_text(), set()),
    "written": (lambda root: (root / "a.py").write_text("y"), {"a.py"}),
    "cut": (lambda root: os.truncate(root / "lib/b.py", 1), {"lib/b.py"}),
    "mapped": (lambda root: mapped(root / "lib/deep/c.py"), {"lib/deep/c.py"}),
    "another mode": (lambda root: (root / "lib/b.py").chmod(0o700), {"lib/b.py"}),
    "another time": (lambda root: os.utime(root / "a.py"), {"a.py"}),
    "removed": (lambda root: (root / "a.py").unlink(), {"a.py"}),
    "moved": (lambda root: (root / "a.py").rename(root / "lib/a"), {"a.py", "lib/a"}),
    "moved away": (lambda root: (root / "a.py").rename(root.parent / "a"), {"a.py"}),
    "a folder": (lambda root: (root / "lib/data").mkdir(), {"lib/data"}),
    "a link": (lambda root: (root / "to").symlink_to("/"), {"to"}),
    "no UTF-8": (lambda root: Path(root, os.fsdecode(b"\xff")).touch(), {os.fsdecode(b"\xff")}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_may_have_changed_is_told_once_and_at_once(root, watch, change):
    act, told = CHANGES[change]
    act(root)
    assert watch.told(root) == told
    assert watch.told(root) == set()


def test_what_another_process_did_is_told_once_it_has_ended(root, watch):
    words = "import sys; open(sys.argv[1], 'a').write('y'); open(sys.argv[2], 'w')"
    paths = (root / "a.py", root / "lib/new")
    subprocess.run([sys.executable, "-c", words, *paths], check=True)
    assert watch.told(root) == {"a.py", "lib/new"}


@pytest.mark.parametrize("name", ["lib", "lib/deep", ""])
def test_of_a_folder_that_is_another_one_by_now_nobody_can_say(root, watch, name):
    folder = root / name
    folder.rename(root.parent / "moved")
    folder.mkdir()
    assert watch.told(root) is None
    assert watch.told(root) is None  # until it is begun again
    (root / "lib/deep").mkdir(parents=True, exist_ok=True)
    watch.begin(root, {"lib", "lib/deep"})
    (root / "lib/deep/new").touch()
    assert watch.told(root) == {"lib/deep/new"}


def test_where_more_happened_than_the_kernel_keeps_nobody_can_say(root, watch):
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 1 << 17:
        pytest.skip(f"this kernel keeps {most} events")
    # Two in turns: of equal ones that follow each other the kernel keeps one.
    for _ in range(most // 4 + 1):
        for name in ("a.py", "lib/b.py"):
            with (root / name).open("a"):
                os.utime(root / name)
    assert watch.told(root) is None


def test_one_root_is_watched_at_a_time(root, watch, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    watch.begin(other, ())
    assert watch.told(root) is None
    (root / "a.py").write_text("y")
    (other / "new").touch()
    assert watch.told(other) == {"new"}


def test_begun_again_it_tells_what_had_changed_before(root, watch):
    (root / "a.py").write_text("y")
    watch.begin(root, {"lib", "lib/deep"})
    assert watch.told(root) == {"a.py"}


def test_where_the_kernel_cannot_tell_of_all_nothing_is_watched(root, monkeypatch):
    one = FolderWatch()
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    one.begin(root, {"lib", "gone"})
    assert one.told(root) is None
    monkeypatch.setattr(folder_watch, "MOST_FOLDERS", 2)
    one.begin(root, {"lib", "lib/deep"})
    assert one.told(root) is None
    monkeypatch.undo()
    monkeypatch.setattr(mounts, "mount_of", lambda path: Mount("/", "nfs4"))
    one.begin(root, {"lib", "lib/deep"})
    assert one.told(root) is None
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files


def test_a_kernel_that_tells_nothing_of_our_own_file_is_not_believed(root, monkeypatch):
    one = FolderWatch()
    monkeypatch.setattr(
        folder_watch.atomic, "temporary_name", lambda path: path.parent.parent / "x"
    )
    one.begin(root, {"lib", "lib/deep"})
    assert one.told(root) is None
