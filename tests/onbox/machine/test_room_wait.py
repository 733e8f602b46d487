from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boxcar.shared.errors import NoRoomError
from onbox.machine import room_wait
from onbox.machine.room_wait import RoomWait

FULL = OSError(errno.ENOSPC, "No space left on device", "/")


class Clock:
    """Time passes only while somebody waits; it is also the waiting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.is_to_end = False
        self.warnings: list[str] = []
        monkeypatch.setattr(room_wait.time, "monotonic", lambda: self.now_s)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def patience(self, limit_s: float = 1800.0) -> RoomWait:
        return RoomWait(limit_s, self.wait, lambda: self.is_to_end, self.warnings.append)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def failing(*errors: BaseException) -> Callable[[], str]:
    """Raises these one after another; then it is done."""
    left: Iterator[BaseException] = iter(errors)

    def act() -> str:
        for error in left:
            raise error
        return "done"

    return act


def test_what_meets_a_full_disk_is_done_again_within_a_minute_of_room(clock: Clock) -> None:
    assert clock.patience().through(failing(FULL, NoRoomError("/data: 0 bytes are free"))) == "done"
    assert 0 < clock.now_s <= 60


def test_a_person_is_told_once_with_the_numbers(clock: Clock) -> None:
    clock.patience().through(failing(*[FULL] * 20))
    [warning] = clock.warnings
    assert "No space left on device" in warning
    assert "bytes and" in warning
    assert "30 minutes" in warning


def test_after_its_limit_it_raises_what_was_raised(clock: Clock) -> None:
    with pytest.raises(NoRoomError, match="0 bytes"):
        clock.patience().through(failing(*[NoRoomError("/data: 0 bytes are free")] * 1000))
    assert clock.now_s == 1800.0


def test_without_a_limit_it_raises_at_once_and_does_not_speak_of_waiting(clock: Clock) -> None:
    with pytest.raises(OSError, match="No space"):
        clock.patience(0.0).through(failing(FULL))
    assert (clock.now_s, clock.warnings) == (0.0, [])


def test_who_is_told_to_end_does_not_wait(clock: Clock) -> None:
    clock.is_to_end = True
    with pytest.raises(OSError, match="No space"):
        clock.patience().through(failing(FULL))
    assert clock.now_s == 0.0


def test_any_other_error_is_not_waited_for(clock: Clock) -> None:
    with pytest.raises(PermissionError):
        clock.patience().through(failing(PermissionError(errno.EACCES, "Permission denied", "/x")))
    assert clock.now_s == 0.0


def test_an_error_says_what_is_left_where_that_can_be_asked(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "file"))
    assert "bytes" in room_wait.reason(full)
    gone = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "no" / "file"))
    assert room_wait.reason(gone) == f"{gone.filename}: No space left on device"
    assert room_wait.reason(NoRoomError("here: 1 byte is free")) == "here: 1 byte is free"
