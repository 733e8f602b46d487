"""Waiting for room: a full disk ends a queue only when nobody has made room for a long time.

Somebody mostly does: another queue's result is pruned, or a person deletes something. So what meets
a full disk is done again, until there is room or the profile's patience is at its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

from boxcar.shared.disk.mounts import disk_room, is_full
from boxcar.shared.errors import NoRoomError, reason_of, words_of
from boxcar.shared.sentence import _

LOOK_EVERY_S = 15.0
T = TypeVar("T")


class RoomWait:
    """`wait` passes some seconds, `is_to_end` cuts it short, `warn` is told once for each wait."""

    def __init__(
        self,
        limit_s: float,
        wait: Callable[[float], object],
        is_to_end: Callable[[], bool],
        warn: Callable[[str], None],
    ) -> None:
        self._limit_s = limit_s
        self._wait = wait
        self._is_to_end = is_to_end
        self._warn = warn

    def through(self, act: Callable[[], T]) -> T:
        """Do it; while a disk is full, wait and do it again. Raises what `act` raises at the end.

        `act` has to be harmless when it is done again.
        """
        tries = self.tries(act)
        while True:
            try:
                self._wait(next(tries))
            except StopIteration as done:
                found: T = done.value
                return found

    def tries(self, act: Callable[[], T]) -> Generator[float, None, T]:
        """The same in steps: each is the time to wait before the next."""
        ends_at = None
        while True:
            try:
                return act()
            except Exception as error:
                if not is_no_room(error):
                    raise
                if ends_at is None:
                    ends_at = time.monotonic() + self._limit_s
                    self._say(error)
                if time.monotonic() >= ends_at or self._is_to_end():
                    raise
            yield min(LOOK_EVERY_S, max(0.0, ends_at - time.monotonic()))

    def _say(self, error: BaseException) -> None:
        if self._limit_s:
            self._warn(
                _(
                    "{why}. The queue waits until there is room, {minutes:g} minutes at most",
                    why=reason(error),
                    minutes=self._limit_s / 60,
                )
            )


def is_no_room(error: BaseException) -> bool:
    return is_full(error) or isinstance(error, NoRoomError)


def reason(error: BaseException) -> str:
    """What an error says; of a disk that is full with what it has left."""
    if not isinstance(error, OSError) or not error.filename:
        return words_of(error)
    text = _("{head}: {text}", head=error.filename, text=reason_of(error))
    return _with_what_is_left(text, error) if is_full(error) else text


def _with_what_is_left(text: str, error: OSError) -> str:
    try:
        room = disk_room(Path(error.filename).parent)
    except OSError:
        return text
    about = {"text": text, "bytes": room.free_bytes, "inodes": room.free_inodes}
    if room.free_inodes is None:
        return _("{text} ({bytes} bytes are free)", **about)
    return _("{text} ({bytes} bytes and {inodes} inodes are free)", **about)
