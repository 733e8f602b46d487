"""Who hears that a rented box is about to stop itself: the chats of each run that was started here.

Where an agent of the run is at work, it says so (`DeadlineNotice`); else this does, between agents.
It never raises: a chat that is down keeps no deadline from its end. A run that was never launched
has no chats here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import codec, control, release
from boxcar.shared.files.deadline_notice import DeadlineNotice
from boxcar.shared.files.own_end import read_own_end
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.record import replace
from onbox.agent.between_agents import say_between_agents
from onbox.machine import credentials, place
from onbox.machine.credentials import Credentials
from onbox.machine.place import Place


class DeadlineNews:
    def __init__(
        self, mark: Path, record: Path, quiet_s: float, most_s: float, data_dir: Path
    ) -> None:
        """`record` is what was said to the provider, and by it."""
        self._record, self._data_dir = record, data_dir
        self._notice = DeadlineNotice("", False, int(quiet_s), int(most_s), str(mark))
        self._has_failed = False
        for path in data_dir.glob("boxcar/*/deadline-notice-*.json"):
            path.unlink(missing_ok=True)  # of the time before a restart

    def comes(self, in_s: float, *, is_cap: bool) -> None:
        """The box stops itself then."""
        at = timestamp.after(timestamp.utc_now(), in_s)
        self._notice = replace(self._notice, at=at, is_cap=is_cap)
        self._tell(self._notice)

    def is_off(self) -> None:
        """It does not, after all."""
        self._tell(replace(self._notice, is_over=True))

    def is_still_here(self) -> None:
        """It was told to stop some time ago; said once."""
        if not self._has_failed:
            self._has_failed = True
            told = read_own_end(self._record)
            self._tell(replace(self._notice, answer=told.said if told else ""))

    def _tell(self, notice: DeadlineNotice) -> None:
        for where, known in self._places():
            with suppress(BoxcarError, OSError):
                if lock.is_held(where.durable.lock(where.queue)):
                    path = where.scratch.deadline_notice(where.queue)
                    atomic.write_whole(path, codec.to_document(notice))
                else:
                    text = notice.sentence(where.box)
                    say_between_agents(where, known, notice.what, text, is_over=notice.is_over)

    def _places(self) -> Iterator[tuple[Place, Credentials]]:
        """Of each run one queue that was started here: one with an agent, if there is one."""
        for scratch in paths.scratches(self._data_dir):
            found = []
            for queue in scratch.started():
                with suppress(BoxcarError, OSError):
                    found.append(_place_of(scratch, queue))
            found.sort(key=lambda one: not lock.is_held(one[0].durable.lock(one[0].queue)))
            yield from found[:1]


def _place_of(scratch: ScratchPaths, queue: str) -> tuple[Place, Credentials]:
    was = control.read_agent_start(scratch.start(queue))
    folder = DurablePaths(paths.on_box(was.durable_dir), was.run).release(was.release)
    made = release.read_plan(folder)
    path = paths.on_box(made.box(was.box).credentials)
    known = credentials.read(path) if path.exists() else Credentials()
    return place.of_queue(made, folder, release.read_release(folder), queue), known
