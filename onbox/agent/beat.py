"""The agent's heartbeat: what it does and what the box has left, every few seconds."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.files.heartbeat import Copying, Heartbeat, Seen
from boxcar.shared.files.journal import JournalEnd
from boxcar.shared.news.wanted import IDLE_FOR_S, IDLE_PERCENT
from boxcar.shared.record import replace
from boxcar.shared.sentence import _
from onbox.agent.live_metrics import LiveNumbers
from onbox.agent.seen_in_cell import SeenInCell
from onbox.judging import progress_tail
from onbox.machine import gauges
from onbox.machine.credentials import BoxSecrets
from onbox.machine.gpus import Gpus
from onbox.machine.place import Place

EVERY_S = 5.0
PROGRESS_EVENT_S = 60.0


# Of a cell and the number of its attempt.
Numbers = Callable[[str, int | None], LiveNumbers]


class Beat:
    """Written by the agent's own loop, not by a thread: a loop that hangs must look like it."""

    def __init__(self, place: Place, numbers: Numbers, secrets: BoxSecrets | None = None) -> None:
        """`numbers` gives what is known of those that the job names; it does not wait. None of the
        `secrets` is in a heartbeat.
        """
        self._place = place
        self._secrets = secrets or BoxSecrets()
        self._numbers = numbers
        self._seen = SeenInCell(place.scratch)
        self._gpus = Gpus()
        self._idle = IdleGpus()
        self._idle_news: dict[str, Any] | None = None
        self.cell: str | None = None
        self.attempt: int | None = None
        self._next_at = 0.0
        self._next_event_at = 0.0
        self._last_sign: Any = None

    def at(self, cell: str | None, attempt: int | None = None) -> None:
        """From now on the agent is at this cell; None: it waits for one."""
        self.cell, self.attempt, self._next_at = cell, attempt, 0.0
        self._next_event_at = time.monotonic() + PROGRESS_EVENT_S
        # A second attempt finds the first one's last line in the file: it is no news.
        self._last_sign = self._progress().get("step")

    def tick(
        self,
        *,
        journal: JournalEnd,
        is_settling: bool,
        webhooks: dict[str, Any],
        copying: Copying | None = None,
    ) -> dict[str, Any] | None:
        """Write the heartbeat if it is due; what an event says of the progress that is worth one,
        else None.

        `journal` is its end as it is on the disk, `copying` how far the copy of a result is.
        """
        if time.monotonic() < self._next_at:
            return None
        self._next_at = time.monotonic() + EVERY_S
        named = self._numbers(self.cell, self.attempt) if self.cell else LiveNumbers()
        found = self._progress()
        beside = {name: value for name, value in found.items() if name not in named.last}
        told = LiveNumbers(named.last | beside, named.best)
        phase = "running" if self.cell else "syncing" if is_settling else "idle"
        self._write(phase, told, journal, webhooks, copying)
        if not self._is_worth_an_event(told.last.get("step", named.last or None)):
            return None
        return {"progress": told.last} | ({"best": told.best} if told.best else {})

    def idle(self) -> dict[str, Any] | None:
        """What an event says of GPUs that idle, once."""
        news, self._idle_news = self._idle_news, None
        return news

    def _progress(self) -> dict[str, Any]:
        return progress_tail.last(self._place.scratch.out(self.cell)) if self.cell else {}

    def _seen_now(self) -> Seen | None:
        seen = self._seen.seen(self.cell, self.attempt) if self.cell else None
        return seen and replace(seen, numbers=self._secrets.known().left_out_of(seen.numbers))

    def _gauges(self) -> dict[str, Any]:
        read = gauges.read(Path(self._place.scratch.data_dir), self._place.durable.root)
        gpus = self._gpus.read()
        found = self._idle.look(self.cell, self.attempt, gpus, time.monotonic())
        self._idle_news = found or self._idle_news
        return read | ({"gpus": gpus} if gpus else {})

    def _write(
        self,
        phase: str,
        numbers: LiveNumbers,
        journal: JournalEnd,
        webhooks: dict[str, Any],
        copying: Copying | None,
    ) -> None:
        place, known = self._place, self._secrets.known()
        beat = Heartbeat(
            queue=place.queue,
            box=place.box,
            release=place.release.name,
            at=timestamp.utc_now(),
            pid=os.getpid(),
            phase=phase,
            cell=self.cell,
            attempt=self.attempt,
            progress=known.left_out_of(numbers.last),
            best=known.left_out_of(numbers.best),
            seen=self._seen_now(),
            gauges=self._gauges(),
            journal=journal,
            copying=copying,
            extra={"webhooks": known.left_out_of(webhooks)} if webhooks else {},
        )
        # A tier that fails for a moment costs a heartbeat; what has to be written says it itself.
        with contextlib.suppress(OSError):
            atomic.write_whole(place.durable.heartbeat(place.queue), codec.to_document(beat))

    def _is_worth_an_event(self, sign: Any) -> bool:
        """`sign` is what changes when the cell gets on: its step, else the job's numbers."""
        if sign is None or sign == self._last_sign or time.monotonic() < self._next_event_at:
            return False
        self._last_sign = sign
        self._next_event_at = time.monotonic() + PROGRESS_EVENT_S
        return True


# --- Whether the GPUs of this box idle while a cell runs, which nobody sees who sleeps.

# Whoever looks less often than that was suspended: nobody knows what the GPUs did meanwhile.
LONGEST_GAP_S = 120.0


class IdleGpus:
    """Follows them look by look. Each attempt is told of once."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._looked_s = 0.0
        self._of: tuple[str, int | None] | None = None
        self._told: tuple[str, int | None] | None = None

    def look(
        self, cell: str | None, attempt: int | None, rows: Sequence[Any], now_s: float
    ) -> dict[str, Any] | None:
        """What an event says of it: cell, attempt, percent of the busiest card, seconds and text;
        None where there is nothing to tell. `now_s` is of a clock that never goes back.
        """
        busiest = _busiest_percent(rows)
        is_same = (cell, attempt) == self._of and now_s - self._looked_s <= LONGEST_GAP_S
        self._looked_s = now_s
        if cell is None or busiest is None or busiest >= IDLE_PERCENT:
            self._since_s = self._of = None
            return None
        if not is_same or self._since_s is None:
            self._since_s, self._of = now_s, (cell, attempt)
        idle_s = now_s - self._since_s
        if idle_s < IDLE_FOR_S or self._told == self._of:
            return None
        self._told = self._of
        text = _(
            "every GPU has been under {percent:.0f} % for {minutes:.0f} min while {cell} runs",
            percent=IDLE_PERCENT,
            minutes=idle_s / 60,
            cell=cell,
        )
        about = {"percent": round(busiest), "seconds": round(idle_s), "text": text}
        return {"cell": cell, "attempt": attempt} | about


def _busiest_percent(rows: Sequence[Any]) -> float | None:
    """None where no card says it."""
    told = [row.get("utilization_percent") for row in rows if isinstance(row, dict)]
    return max((float(one) for one in told if isinstance(one, (int, float))), default=None)
