from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import atomic
from boxcar.shared.disk.blank import SIZE_BYTES, Blank

FORK = multiprocessing.get_context("fork")
WON, LOST = 10, 11
LAID, FILLED = b"-" * SIZE_BYTES, b"x" * SIZE_BYTES
_link = os.link


@pytest.fixture
def blank(tmp_path: Path) -> Blank:
    return Blank(tmp_path / "q next")


def failing(code: int) -> Callable[..., Any]:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_becomes_one_file_and_then_another_is_to_be_laid(tmp_path: Path, blank: Blank) -> None:
    for name in ("a", "b"):
        assert not blank.become(tmp_path / name, FILLED)
        blank.lay(LAID)
        assert blank.become(tmp_path / name, FILLED)
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == FILLED
    assert (tmp_path / "a").stat().st_nlink == 1


def test_what_is_laid_is_whole_on_the_disk_and_nothing_waits_for_that_later(
    tmp_path: Path, blank: Blank, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []

    def seen_fsync(fd: int) -> None:
        assert stat.S_ISREG(os.fstat(fd).st_mode)
        synced.append(Path(f"/proc/self/fd/{fd}").read_bytes())

    monkeypatch.setattr(os, "fsync", seen_fsync)
    blank.lay(LAID)
    blank.lay(FILLED)  # one lies there
    assert synced == [LAID]
    assert blank.become(tmp_path / "a", FILLED)
    assert synced == [LAID]


def test_it_is_filled_in_the_place_that_it_has_on_the_disk(tmp_path: Path, blank: Blank) -> None:
    blank.lay(LAID)
    [laid] = tmp_path.iterdir()
    before = laid.stat()
    assert blank.become(tmp_path / "a", FILLED)
    after = (tmp_path / "a").stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)


def test_a_name_that_is_taken_stays_as_it_is(tmp_path: Path, blank: Blank) -> None:
    (tmp_path / "a").write_bytes(b"another's")
    blank.lay(LAID)
    assert not blank.become(tmp_path / "a", FILLED)
    assert (tmp_path / "a").read_bytes() == b"another's"
    assert names(tmp_path) == ["a"]
    blank.lay(LAID)
    assert blank.become(tmp_path / "b", FILLED)


def race(folder: Path, number: int, go: Any) -> None:
    own = Blank(folder / f"q{number} next")
    own.lay(LAID)
    go.wait(LIMIT_S)
    content = str(number).encode() * SIZE_BYTES
    is_ours = own.become(folder / "a", content) if number % 2 else None
    sys.exit(WON if is_ours or atomic.create_once(folder / "a", content) else LOST)


def test_of_many_who_create_it_so_or_otherwise_one_wins(tmp_path: Path) -> None:
    go = FORK.Barrier(8)
    racers = [FORK.Process(target=race, args=(tmp_path, number, go)) for number in range(8)]
    for one in racers:
        one.start()
    for one in racers:
        one.join(LIMIT_S)
    codes = [one.exitcode for one in racers]
    assert sorted(codes) == [WON] + 7 * [LOST]
    assert (tmp_path / "a").read_bytes() == str(codes.index(WON)).encode() * SIZE_BYTES


@pytest.mark.parametrize("other", [FILLED + b"x", FILLED[1:]])
def test_what_is_no_sector_is_neither_laid_nor_put_into_it(
    tmp_path: Path, blank: Blank, other: bytes
) -> None:
    blank.lay(other)
    assert names(tmp_path) == []
    blank.lay(LAID)
    assert not blank.become(tmp_path / "a", other)
    assert not (tmp_path / "a").exists()
    assert blank.become(tmp_path / "b", FILLED)


def test_a_tier_that_is_copied_by_links_makes_nobody_win(tmp_path: Path, blank: Blank) -> None:
    blank.lay(LAID)
    [laid] = tmp_path.glob("*.part")
    _link(laid, tmp_path / "snapshot")
    (tmp_path / "a").write_bytes(b"another's")
    assert not blank.become(tmp_path / "a", FILLED)


def test_a_name_of_its_own_that_cannot_be_removed_changes_nothing(
    tmp_path: Path, blank: Blank, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank.lay(LAID)
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", failing(errno.EIO))
        assert blank.become(tmp_path / "a", FILLED)
    blank.lay(LAID)
    assert blank.become(tmp_path / "b", LAID)
    assert (tmp_path / "a").read_bytes() == FILLED


def test_one_that_somebody_removed_or_replaced_makes_no_file(tmp_path: Path, blank: Blank) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"another's")
    for replace in (lambda laid: None, lambda laid: laid.symlink_to(elsewhere)):
        blank.lay(LAID)
        [laid] = tmp_path.glob("*.part")
        laid.unlink()
        replace(laid)
        assert not blank.become(tmp_path / "a", FILLED)
    assert elsewhere.read_bytes() == b"another's"
    assert names(tmp_path) == ["elsewhere"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EXDEV])
def test_where_nothing_can_be_named_so_nothing_is_laid_any_more(
    tmp_path: Path, blank: Blank, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    blank.lay(LAID)
    monkeypatch.setattr(os, "link", failing(code))
    assert not blank.become(tmp_path / "a", FILLED)
    blank.lay(LAID)
    assert names(tmp_path) == []


def test_a_disk_that_fails_for_a_moment_is_tried_again(
    tmp_path: Path, blank: Blank, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank.lay(LAID)
    for name in ("link", "write"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, failing(errno.ENOSPC))
            assert not blank.become(tmp_path / "a", FILLED)
        blank.lay(LAID)
    assert blank.become(tmp_path / "a", FILLED)


def test_half_of_it_gets_no_name(
    tmp_path: Path, blank: Blank, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank.lay(LAID)
    monkeypatch.setattr(os, "write", lambda fd, data: len(data) // 2)
    assert not blank.become(tmp_path / "a", FILLED)
    assert names(tmp_path) == []


def test_it_wins_where_nfs_lost_the_answer_to_its_link(
    tmp_path: Path, blank: Blank, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_again(source: str, target: Path) -> None:
        _link(source, target)
        raise FileExistsError(errno.EEXIST, "it is there", str(target))

    blank.lay(LAID)
    monkeypatch.setattr(os, "link", asked_again)
    assert blank.become(tmp_path / "a", FILLED)
    assert names(tmp_path) == ["a"]


def test_what_one_that_was_killed_has_left_goes_once_and_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner in ("q next", "q", "other next"):
        Blank(tmp_path / owner).lay(LAID)
    last = Blank(tmp_path / "q next")
    last.lay(LAID)
    assert sorted(name.split(".")[1] for name in names(tmp_path)) == ["other next", "q", "q next"]
    monkeypatch.setattr(atomic, "remove_unfinished_of", lambda path: pytest.fail("listed again"))
    last.drop()
    last.lay(LAID)


def test_dropped_it_leaves_nothing(tmp_path: Path, blank: Blank) -> None:
    blank.drop()
    blank.lay(LAID)
    blank.drop()
    blank.drop()
    assert names(tmp_path) == []
    assert not blank.become(tmp_path / "a", FILLED)
