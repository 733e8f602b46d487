"""`onbox deadline`: what `up` leaves on a box that it rented, so that a forgotten one stops.

The box stops, by the reversible verb and its own key, when nothing has moved there for `quiet_s`,
or when it is `most_s` old. Only progress moves the first one on: a cell of any run here that writes
into its log or its results. It never destroys. Time is that of the running machine, which no wrong
clock moves. A person calls it off by removing the file that it holds, until the next `launch`.

All that the end needs is loaded at once: the program that this was started from may be replaced.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from boxcar.shared import paths
from boxcar.shared.disk import lock
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.wire.box_asks import STOP
from onbox.machine import end_itself

LOOK_EVERY_S = 60.0
# A provider that said no, or a box that is still here after a yes, is asked again after this.
AGAIN_S = 600.0
# How long before its end the chats hear of it, as of the end of an idle box.
NOTICE_S = 600.0


@dataclass(frozen=True)
class Deadline:
    """`at_s`: when the box stops, on the clock by which it was asked; `most_at_s` never moves."""

    quiet_s: float
    most_at_s: float
    moved_s: float

    @property
    def at_s(self) -> float:
        return min(self.moved_s + self.quiet_s, self.most_at_s)

    @property
    def is_cap(self) -> bool:
        return self.at_s == self.most_at_s


class News(Protocol):
    """Who is told; see `deadline_news.py`. It never raises."""

    def comes(self, in_s: float, *, is_cap: bool) -> None: ...
    def is_off(self) -> None: ...
    def is_still_here(self) -> None: ...


def run(mark: Path, provider: str, quiet_s: float, most_s: float, data_dir: Path) -> int:
    """Until the box is gone, or nobody wants this. 0 also where another one waits already."""
    import requests  # noqa: F401 (see above)

    from onbox.deadline_news import DeadlineNews

    fd = lock.hold(mark)
    if fd is None:
        return exit_codes.DONE
    record = mark.with_name(f"{mark.name}-end.json")
    news = DeadlineNews(mark, record, quiet_s, most_s, data_dir)
    try:
        looks = (lambda: moved(data_dir), lambda: _stop(record, provider))
        wait(mark, quiet_s, most_s, *looks, news=news)
    finally:
        os.close(fd)
    return exit_codes.DONE


def wait(
    mark: Path,
    quiet_s: float,
    most_s: float,
    what_moved: Callable[[], Mapping[str, tuple[int, int]]],
    stop: Callable[[], None],
    *,
    news: News,
    now_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Look each minute; stop the box when its time is over, and again for as long as it is here."""
    begun_s, seen, is_told = now_s(), what_moved(), False
    due = Deadline(quiet_s, begun_s + most_s, begun_s)
    while mark.exists():
        sleep(LOOK_EVERY_S)
        # What is deleted is no progress, and neither is what cannot be read.
        found = what_moved()
        if any(seen.get(path) != stat for path, stat in found.items()):
            due = Deadline(quiet_s, due.most_at_s, now_s())
        seen, left_s = found, due.at_s - now_s()
        if left_s <= 0 and mark.exists():
            stop()
            sleep(AGAIN_S)
            news.is_still_here()
        elif left_s <= NOTICE_S and not is_told:
            is_told = True
            news.comes(left_s, is_cap=due.is_cap)
        elif left_s > NOTICE_S and is_told:
            is_told = False
            news.is_off()
    if is_told:
        news.is_off()


def moved(data_dir: Path) -> dict[str, tuple[int, int]]:
    """Size and time of all that the cells of this box's runs write, by path."""
    found: dict[str, tuple[int, int]] = {}
    for scratch in paths.scratches(data_dir):
        for folder in scratch.cells.glob("*/"):
            for path in (scratch.log(folder.name), *_files(scratch.out(folder.name))):
                try:
                    stat = path.stat()
                except OSError:
                    continue
                found[str(path)] = (stat.st_mtime_ns, stat.st_size)
    return found


def _files(folder: Path) -> Iterator[Path]:
    for root, _folders, names in os.walk(folder):
        yield from (Path(root, name) for name in names)


def _stop(record: Path, provider: str) -> None:
    end_itself.keep_begin(record, STOP)
    end_itself.call_provider(record, provider, STOP, os.environ)
