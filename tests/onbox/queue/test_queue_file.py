from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files.queue_line import LAST_LINE_S
from onbox.queue import queue_file
from onbox.queue.queue_file import GONE_S, STILL_S, QueueFile

TWO = "configs/a.json t 3\nconfigs/b.json t 3\n"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(queue_file.time, "monotonic", lambda: made.now_s)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "q1.txt"
    made.write_text(TWO)
    return made


def cells(file: QueueFile) -> list[str]:
    return [cell.name for cell in file.queue.cells]


def begun(path: Path) -> QueueFile:
    file = QueueFile(path)
    assert file.look()
    assert cells(file) == ["a", "b"]
    return file


def test_what_is_appended_counts_at_once(path: Path, clock: Clock) -> None:
    file = begun(path)
    path.write_text(TWO + "configs/c.json t 3\n")
    assert file.look()
    assert cells(file) == ["a", "b", "c"]


@pytest.mark.parametrize("half", ["", "configs/a.js", "configs/a.json t 3\n", "# new\nconfigs/a"])
def test_a_file_that_is_saved_in_place_counts_once_it_is_whole(
    path: Path, clock: Clock, half: str
) -> None:
    file = begun(path)
    path.write_text(half)
    assert not file.look()
    assert cells(file) == ["a", "b"]
    clock.now_s += STILL_S - 0.1
    assert not file.look()
    path.write_text(TWO + "configs/c.json t 3\n")
    assert file.look()
    assert cells(file) == ["a", "b", "c"]


def test_a_file_that_lost_lines_and_stands_still_is_believed(path: Path, clock: Clock) -> None:
    file = begun(path)
    path.write_text("configs/b.json t 3\n")
    assert not file.look()
    clock.now_s += STILL_S
    assert file.look()
    assert cells(file) == ["b"]


def test_one_that_still_changes_does_not_stand_still(path: Path, clock: Clock) -> None:
    file = begun(path)
    for letter in "xyz":
        path.write_text(f"configs/{letter}.json t 3\n")
        assert not file.look()
        clock.now_s += STILL_S - 0.1
    clock.now_s += 0.2
    assert file.look()
    assert cells(file) == ["z"]


@pytest.mark.parametrize("word", ["gone", "empty"])
def test_one_that_stays_gone_or_empty_ends_the_queue_with_that_word(
    path: Path, clock: Clock, word: str
) -> None:
    file = begun(path)
    path.unlink() if word == "gone" else path.write_text("")
    assert not file.look()
    clock.now_s += GONE_S - 0.1
    assert not file.look()
    clock.now_s += 0.1
    with pytest.raises(DamagedError, match=f"{path}.*{word}"):
        file.look()


def test_one_that_comes_back_has_its_whole_patience_again(path: Path, clock: Clock) -> None:
    file = begun(path)
    for _ in range(3):
        path.unlink()
        assert not file.look()
        clock.now_s += GONE_S - 0.1
        path.write_text(TWO)
        assert file.look()


def test_a_queue_that_begins_empty_is_believed_after_a_while(path: Path, clock: Clock) -> None:
    path.write_text("")
    file = QueueFile(path)
    assert not file.look()
    clock.now_s += GONE_S
    assert file.look()
    assert cells(file) == []
    assert file.look()


def long_ago(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns - 3600 * 10**9))


@pytest.mark.parametrize(("age_s", "is_read"), [(3600, False), (0, True)])
def test_a_file_is_not_read_again_while_nobody_writes_it(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, age_s: int, is_read: bool
) -> None:
    """One that was just written is: another change may leave the same time."""
    if age_s:
        long_ago(path)
    file, before = begun(path), path.stat()
    with path.open("r+b") as opened:
        opened.write(b"configs/z")
    monkeypatch.setattr(queue_file.os, "fstat", lambda number: before)
    assert file.look() is not is_read


@pytest.mark.parametrize("is_in_place", [True, False])
def test_an_edit_of_the_same_length_and_time_is_seen(
    path: Path, clock: Clock, is_in_place: bool
) -> None:
    long_ago(path)
    file, before = begun(path), path.stat()
    other = path if is_in_place else path.with_name("new")
    other.write_text(TWO.replace("b.json", "z.json"))
    os.utime(other, ns=(0, before.st_mtime_ns))
    other.replace(path)
    assert not file.look()
    clock.now_s += STILL_S
    assert file.look()
    assert cells(file) == ["a", "z"]


def test_a_last_line_without_its_line_feed_counts_once_the_file_has_stood_still(
    path: Path, clock: Clock
) -> None:
    file = begun(path)
    path.write_text(TWO + "configs/c.json t 3")
    assert file.look() and not file.count_last_line()
    clock.now_s += LAST_LINE_S - 0.1
    path.write_text(TWO + "configs/c.json t 30")
    assert file.look() and not file.count_last_line()
    clock.now_s += LAST_LINE_S - 0.1
    assert file.look() and not file.count_last_line()
    assert cells(file) == ["a", "b"]
    clock.now_s += 0.1
    assert file.look() and file.count_last_line()
    assert (cells(file), file.queue.unfinished) == (["a", "b", "c"], "")
    assert file.look() and not file.count_last_line()


@pytest.mark.parametrize("more", ["\n", "\r\n", "\nconfigs/d.json t 3\n", "0", "0\n", " x=1\n# no"])
def test_after_it_has_counted_a_last_line_is_read_as_if_it_never_had(
    path: Path, clock: Clock, more: str
) -> None:
    text = TWO + "configs/c.json t 3"
    path.write_text(text)
    file = QueueFile(path)
    assert file.look()
    clock.now_s += LAST_LINE_S
    assert file.count_last_line()
    path.write_bytes((text + more).encode())
    assert file.look()
    fresh = QueueFile(path)
    clock.now_s += GONE_S
    assert fresh.look() or fresh.look()
    assert file.queue == fresh.queue
