from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import random
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import atomic

FORK = multiprocessing.get_context("fork")
WON, LOST = 10, 11
OLD, NEW = b"old\n", b"new content\n" * 1000


def failing(code: int) -> Callable[..., Any]:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def dying(*_args: object, **_kwargs: object) -> None:
    os._exit(9)


def half_a_write_then_death(fd: int, data: memoryview) -> int:
    _write(fd, data[: len(data) // 2])
    os._exit(9)


_write = os.write


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order in which durable's steps reach the system."""
    seen: list[str] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def seen_fsync(fd: int) -> None:
        seen.append("fsync folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "fsync file")
        fsync(fd)

    def seen_replace(source: str, target: Path) -> None:
        seen.append("rename")
        replace(source, target)

    def seen_link(source: Path, target: Path) -> None:
        seen.append("link")
        link(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    monkeypatch.setattr(os, "link", seen_link)
    return seen


# --- write_whole


def test_write_whole_replaces_the_content_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "file"
    for data in (OLD, b"", NEW):
        atomic.write_whole(path, data)
        assert path.read_bytes() == data
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_write_whole_gives_the_mode_that_was_asked_for(tmp_path):
    before = os.umask(0o022)
    try:
        atomic.write_whole(tmp_path / "secret", OLD, mode=0o600)
        atomic.write_whole(tmp_path / "plain", OLD)
        atomic.create_once(tmp_path / "once", OLD)
        atomic.append(tmp_path / "journal", OLD)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"secret": 0o600, "plain": 0o644, "once": 0o644, "journal": 0o644}


def test_write_whole_syncs_the_file_before_the_rename_and_the_folder_after(tmp_path, calls):
    atomic.write_whole(tmp_path / "file", NEW)
    assert calls == ["fsync file", "rename", "fsync folder"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("step", ["os.write", "os.fsync", "os.replace"])
def test_a_write_that_fails_at_a_step_leaves_the_old_content_and_no_leftover(
    tmp_path, monkeypatch, step, code
):
    path = tmp_path / "file"
    atomic.write_whole(path, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(step, failing(code))
        with pytest.raises(OSError) as raised:
            atomic.write_whole(path, NEW)
    assert raised.value.errno == code
    assert path.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_an_interrupted_write_leaves_no_leftover(tmp_path, monkeypatch):
    def interrupted(_fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_whole(tmp_path / "file", NEW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("step", "death"),
    [("os.write", half_a_write_then_death), ("os.fsync", dying), ("os.replace", dying)],
)
def test_a_writer_that_dies_at_a_step_leaves_the_old_content(
    tmp_path, monkeypatch, in_child, step, death
):
    path = tmp_path / "file"
    atomic.write_whole(path, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(step, death)
        assert in_child(lambda: atomic.write_whole(path, NEW)) == 9
    assert path.read_bytes() == OLD
    # The dead cannot tidy up. What they leave is known by its name, and a next writer removes it.
    left = [entry.name for entry in tmp_path.iterdir() if entry != path]
    assert len(left) == 1 and atomic.is_temporary(left[0])
    atomic.remove_unfinished(tmp_path)
    atomic.write_whole(path, NEW)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == NEW


def test_a_writer_killed_at_any_moment_leaves_one_whole_content(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([digit]) * 300_000 for digit in b"012"]
    atomic.write_whole(path, contents[0])
    moment = random.Random(0)
    for _ in range(15):
        started = FORK.Event()
        child = FORK.Process(target=write_for_ever, args=(path, contents, started))
        child.start()
        assert started.wait(LIMIT_S)
        time.sleep(moment.uniform(0, 0.03))
        child.kill()
        child.join()
        assert path.read_bytes() in contents
    assert all(entry == path or atomic.is_temporary(entry.name) for entry in tmp_path.iterdir())


def write_for_ever(path: Path, contents: list[bytes], started: Any) -> None:
    started.set()
    while True:
        for content in contents:
            atomic.write_whole(path, content)


# --- create_once


def no_hard_links(monkeypatch: pytest.MonkeyPatch, code: int = errno.EPERM) -> None:
    monkeypatch.setattr(os, "link", failing(code))


def test_create_once_creates_and_then_never_again(tmp_path):
    path = tmp_path / "claim"
    assert atomic.create_once(path, OLD) is True
    assert atomic.create_once(path, NEW) is False
    assert path.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["claim"]
    assert path.stat().st_nlink == 1


def test_create_once_syncs_the_file_before_the_name_and_the_folder_after(tmp_path, calls):
    atomic.create_once(tmp_path / "claim", OLD)
    assert calls == ["fsync file", "link", "fsync folder"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_create_once_works_where_there_are_no_hard_links(tmp_path, monkeypatch, code):
    no_hard_links(monkeypatch, code)
    path = tmp_path / "claim"
    assert atomic.create_once(path, OLD, mode=0o600) is True
    assert atomic.create_once(path, NEW) is False
    assert path.read_bytes() == OLD
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["claim"]


def test_create_once_without_hard_links_syncs_the_file_and_the_folder(tmp_path, calls, monkeypatch):
    no_hard_links(monkeypatch)
    atomic.create_once(tmp_path / "claim", OLD)
    assert calls == ["fsync file", "fsync file", "fsync folder"]


@pytest.mark.parametrize("has_links", [True, False])
def test_of_eight_processes_that_create_at_once_exactly_one_wins(tmp_path, monkeypatch, has_links):
    if not has_links:
        no_hard_links(monkeypatch)
    for number in range(5):
        path = tmp_path / f"claim-{number}"
        winners = race(path, racers=8)
        assert len(winners) == 1
        assert path.read_bytes() == str(winners[0]).encode()


def race(path: Path, racers: int) -> list[int]:
    start = FORK.Barrier(racers)
    children = [
        FORK.Process(target=try_to_win, args=(path, number, start)) for number in range(racers)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(LIMIT_S)
    assert {child.exitcode for child in children} <= {WON, LOST}
    return [number for number, child in enumerate(children) if child.exitcode == WON]


def try_to_win(path: Path, number: int, start: Any) -> None:
    start.wait(LIMIT_S)
    sys.exit(WON if atomic.create_once(path, str(number).encode()) else LOST)


def test_create_once_wins_where_nfs_lost_the_answer_to_its_link(tmp_path, calls, monkeypatch):
    link = os.link

    def link_then_repeat(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_then_repeat)
    assert atomic.create_once(tmp_path / "claim", OLD) is True
    assert [entry.name for entry in tmp_path.iterdir()] == ["claim"]
    assert calls == ["fsync file", "link", "link", "fsync folder"]


def test_create_once_passes_another_error_on_and_creates_nothing(tmp_path, monkeypatch):
    no_hard_links(monkeypatch, errno.EROFS)
    with pytest.raises(OSError):
        atomic.create_once(tmp_path / "claim", OLD)
    assert list(tmp_path.iterdir()) == []


def test_create_once_without_links_leaves_no_name_when_the_disk_fails(tmp_path, monkeypatch):
    no_hard_links(monkeypatch)
    fsync, calls = os.fsync, itertools.count(1)

    def fail_the_second(fd: int) -> None:
        if next(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", fail_the_second)
    with pytest.raises(OSError):
        atomic.create_once(tmp_path / "claim", OLD)
    assert list(tmp_path.iterdir()) == []


# --- append


def test_append_adds_to_the_end_and_syncs(tmp_path, calls):
    path = tmp_path / "journal"
    atomic.append(path, b"one\n")
    assert calls == ["fsync file", "fsync folder"]
    atomic.append(path, b"two\n")
    assert calls == ["fsync file", "fsync folder", "fsync file"]
    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("step", ["os.write", "os.fsync"])
def test_an_append_that_fails_leaves_no_part_behind(tmp_path, monkeypatch, step):
    path = tmp_path / "journal"
    atomic.append(path, b"one\n")

    def write_a_part_then_fail(fd: int, data: memoryview) -> int:
        if len(data) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return _write(fd, data[:2])

    failure = write_a_part_then_fail if step == "os.write" else failing(errno.EIO)
    with monkeypatch.context() as patch:
        patch.setattr(step, failure)
        with pytest.raises(OSError) as raised:
            atomic.append(path, b"two\n")
    assert raised.value.filename == str(path)
    atomic.append(path, b"three\n")
    assert path.read_bytes() == b"one\nthree\n"


def test_an_append_to_a_full_disk_leaves_no_part_behind(small_disk):
    path = small_disk("size=64k") / "journal"
    atomic.append(path, b"one\n")
    with pytest.raises(OSError) as raised:
        atomic.append(path, b"x" * 100_000)
    assert raised.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"one\n"


# --- folders and names


def test_make_folder_makes_every_new_name_durable(tmp_path, calls):
    atomic.make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert calls == ["fsync folder"] * 3
    atomic.make_folder(tmp_path / "a" / "b" / "c")
    assert calls == ["fsync folder"] * 3


def test_sync_folder_takes_a_refusal_of_the_file_system_but_no_lost_write(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    atomic.sync_folder(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError):
        atomic.sync_folder(tmp_path)


def test_sync_file_passes_a_lost_write_on(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(OLD)
    atomic.sync_file(tmp_path / "file")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError):
        atomic.sync_file(tmp_path / "file")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a" * 255, id="255 letters"),
        pytest.param("名" * 85, id="85 letters of 3 bytes"),
        pytest.param("é" * 127, id="127 letters of 2 bytes"),
        pytest.param("a b'$(touch x)\n", id="what a shell would read"),
    ],
)
def test_every_name_that_the_disk_takes_can_be_written(tmp_path, name):
    atomic.write_whole(tmp_path / name, NEW)
    assert atomic.create_once(tmp_path / name, OLD) is False
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_temporary_names_are_known_by_their_name_and_never_the_same(tmp_path):
    names = {atomic.temporary_name(tmp_path / "best.pth") for _ in range(100)}
    assert len(names) == 100
    assert all(path.parent == tmp_path and atomic.is_temporary(path.name) for path in names)
    assert not atomic.is_temporary("best.pth")
    assert not atomic.is_temporary(".hidden")
    assert not atomic.is_temporary("movie.part")


@pytest.mark.parametrize("has_links", [True, False])
def test_no_write_leaves_an_open_file(tmp_path, monkeypatch, has_links):
    if not has_links:
        no_hard_links(monkeypatch)
    before = lowest_free_descriptor(tmp_path)
    for number in range(3):
        atomic.write_whole(tmp_path / "whole", OLD)
        atomic.create_once(tmp_path / f"once-{number}", OLD)
        atomic.create_once(tmp_path / f"once-{number}", OLD)
        atomic.append(tmp_path / "journal", OLD)
        atomic.sync_file(tmp_path / "journal")
    assert lowest_free_descriptor(tmp_path) == before


def lowest_free_descriptor(folder: Path) -> int:
    fd = os.open(folder, os.O_RDONLY)
    os.close(fd)
    return fd


def test_remove_unfinished_removes_what_lies_in_and_below_and_nothing_else(tmp_path):
    (tmp_path / "samples").mkdir()
    kept = ["best.pth", ".hidden", "movie.part", "samples/0001.png"]
    for name in (*kept, ".best.pth.0a1b2c3d.part", "samples/.0002.png.0a1b2c3d.part"):
        (tmp_path / name).write_bytes(OLD)
    atomic.remove_unfinished(tmp_path)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path).as_posix() for path in left} == set(kept)


@pytest.mark.parametrize("sync", [atomic.sync_file, atomic.sync_folder])
def test_an_fsync_that_fails_names_its_path(tmp_path, monkeypatch, sync):
    path = tmp_path / "f"
    path.mkdir() if sync is atomic.sync_folder else path.touch()
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError) as raised:
        sync(path)
    assert (raised.value.filename, raised.value.errno) == (str(path), errno.EIO)
