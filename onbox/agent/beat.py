"""The agent's heartbeat: what it does and what the box has left, every few seconds."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.files.deadline_notice import DeadlineNotice
from boxcar.shared.files.heartbeat import CellBeat, Copying, Fetching, Heartbeat
from boxcar.shared.files.journal import JournalEnd
from boxcar.shared.news.wanted import IDLE_FOR_S, IDLE_PERCENT
from boxcar.shared.record import replace
from boxcar.shared.sentence import Sentence, _
from onbox.agent.cell_watch import CellWatch
from onbox.agent.live_metrics import LiveNumbers
from onbox.agent.seen_in_cell import SeenInCell
from onbox.judging import progress_tail
from onbox.judging.box_troubles import BoxTroubles, Trouble
from onbox.machine import devices, gauges
from onbox.machine.card_reader import CardReader
from onbox.machine.credentials import BoxSecrets
from onbox.machine.gauge_log import GaugeLog
from onbox.machine.place import Place
from onbox.webhooks.life_signs import LifeSigns

EVERY_S = 5.0
PROGRESS_EVENT_S = 60.0


class Numbers(Protocol):
    """What is known of the numbers that the job names; it does not wait."""

    def numbers(self, cell: str, number: int | None) -> LiveNumbers: ...
    def forget(self, cell: str) -> None: ...


class Beat:
    """Written by the agent's own loop, not by a thread: a loop that hangs must look like it."""

    def __init__(
        self,
        place: Place,
        numbers: Numbers,
        secrets: BoxSecrets | None = None,
        signs: LifeSigns | None = None,
    ) -> None:
        """None of the `secrets` is in a heartbeat."""
        self._place = place
        self._secrets = secrets or BoxSecrets()
        self._numbers, self._signs = numbers, signs
        self._seen = SeenInCell(place.scratch)
        self._gpus = CardReader()
        self._log = GaugeLog(
            place.durable.gauges(place.queue), place.scratch.gauge_ring(place.queue)
        )
        self._troubles, self._new_troubles = BoxTroubles(), list[Trouble]()
        self._watch = CellWatch(place, self._log.keep_ring)
        self._at_work: dict[str, _AtWork] = {}
        self._next_at = 0.0
        self._is_setting_up = False
        self._fetching: Fetching | None = None

    @property
    def cell(self) -> str | None:
        """The first of those that run."""
        return next(iter(self._at_work), None)

    def begins(self, cell: str, attempt: int, gpus: tuple[str, ...] = ()) -> None:
        """From now on this cell runs; `gpus`: those that it has for itself."""
        one = self._at_work[cell] = _AtWork(attempt, gpus)
        # A second attempt finds the first one's last line in the file: it is no news.
        one.last_sign = self._progress(cell).get("step")
        self._watch.begins(cell, one.last_sign)
        self._next_at = 0.0

    def ends(self, cell: str) -> None:
        self._at_work.pop(cell, None)
        self._numbers.forget(cell)
        self._seen.forget(cell)
        self._watch.ends(cell)
        self._next_at = 0.0

    def sets_up(self, is_setting_up: bool) -> None:
        self._is_setting_up, self._next_at = is_setting_up, 0.0

    def fetches(self, now: Fetching | None) -> None:
        """How far data from a URL is, before the first cell; None: nothing is fetched."""
        self._is_setting_up, self._fetching = now is not None, now

    def ends_all(self) -> None:
        """The agent ends: the next heartbeat, which is due, is the last one."""
        for cell in list(self._at_work):
            self.ends(cell)
        self._next_at = 0.0

    def tick(
        self,
        *,
        journal: JournalEnd,
        is_settling: bool,
        webhooks: dict[str, Any],
        copying: Copying | None = None,
    ) -> list[dict[str, Any]]:
        """Write the heartbeat if it is due; what events say of the progress that is worth one.

        `journal` is its end as it is on the disk, `copying` how far the copy of a result is.
        """
        if time.monotonic() < self._next_at:
            return []
        self._next_at = time.monotonic() + EVERY_S
        if self._signs:
            self._signs.look(lambda: self._sign_of_life(copying, is_settling=is_settling))
        cells = tuple(self._beat_of(cell, one) for cell, one in self._at_work.items())
        self._write(self._phase(is_settling=is_settling), cells, journal, webhooks, copying)
        return [
            {"cell": beat.cell, "attempt": beat.attempt, "progress": beat.progress}
            | ({"best": beat.best} if beat.best else {})
            for beat, one in zip(cells, self._at_work.values(), strict=True)
            if one.is_worth_an_event(beat.progress.get("step", one.named or None))
        ]

    def _phase(self, *, is_settling: bool) -> str:
        if self._at_work:
            return "running"
        if self._is_setting_up:
            return "setup"
        return "syncing" if is_settling else "idle"

    def unheard(self) -> list[Sentence]:
        """What a person should know of the dead-man's services."""
        return self._signs.problems() if self._signs else []

    def _sign_of_life(self, copying: Copying | None, *, is_settling: bool) -> object:
        """Another one whenever something gets on; None where nothing has to."""
        cells = tuple(
            (cell, one.attempt, self._size_of_log(cell), self._progress(cell).get("step"))
            for cell, one in self._at_work.items()
        )
        if not cells and not is_settling and self._fetching is None:
            return None
        return cells, copying and (copying.cell, copying.done_bytes), self._fetching

    def _size_of_log(self, cell: str) -> int:
        with contextlib.suppress(OSError):
            return self._place.scratch.log(cell).stat().st_size
        return 0

    def idle(self) -> list[dict[str, Any]]:
        """What events say of GPUs that idle, each once."""
        news = [one.idle_news for one in self._at_work.values() if one.idle_news]
        for one in self._at_work.values():
            one.idle_news = None
        return news

    def _progress(self, cell: str) -> dict[str, Any]:
        return progress_tail.last(self._place.scratch.out(cell))

    def _beat_of(self, cell: str, one: _AtWork) -> CellBeat:
        known, found = self._secrets.known(), self._progress(cell)
        live = self._numbers.numbers(cell, one.attempt)
        one.named = live.last
        beside = {name: value for name, value in found.items() if name not in live.last}
        seen = self._seen.seen(cell, one.attempt)
        beat = CellBeat(
            cell,
            one.attempt,
            known.left_out_of(live.last | beside),
            known.left_out_of(live.best),
            seen and replace(seen, numbers=known.left_out_of(seen.numbers)),
            one.gpus,
        )
        self._watch.look(beat, self._size_of_log(cell), live.last)
        return beat

    def _gauges(self) -> dict[str, Any]:
        read = gauges.read(Path(self._place.scratch.data_dir), self._place.durable.root)
        gpus = self._gpus.read()
        for cell, one in self._at_work.items():
            rows = [devices.row_of(gpu, gpus) for gpu in one.gpus] or gpus
            found = one.idle.look(cell, one.attempt, rows, time.monotonic())
            one.idle_news = found or one.idle_news
        return read | ({"gpus": gpus} if gpus else {})

    def keep_last_minutes(self, cell: str) -> None:
        """Of the box, for whoever looks into a cell that failed; it never raises."""
        with contextlib.suppress(OSError):
            self._log.keep_ring(self._place.durable.gauges_of_failed(cell))

    def troubles(self) -> list[Trouble]:
        """What is to be said of the box, each once."""
        found, self._new_troubles = self._new_troubles, []
        return found

    def of_cells(self) -> list[dict[str, Any]]:
        """What warnings say of the cells that run, each once."""
        return self._watch.news()

    def _write_down(self, read: dict[str, Any], cells: tuple[CellBeat, ...]) -> None:
        steps = {one.cell: one.progress["step"] for one in cells if "step" in one.progress}
        seen = {one.cell: one.seen.step for one in cells if one.seen and one.seen.step is not None}
        self._log.take(read, seen | steps)
        is_at_work = bool(cells)
        self._new_troubles += self._troubles.look(read, time.monotonic(), is_at_work=is_at_work)
        self._new_troubles += self._of_deadline()

    def _of_deadline(self) -> list[Trouble]:
        """What the process that holds the box's deadline wants to be said."""
        path = self._place.scratch.deadline_notice(self._place.queue)
        try:
            notice = codec.from_document(DeadlineNotice, path.read_bytes(), str(path))
            path.unlink()
        except (OSError, DamagedError):
            return []
        return [Trouble(notice.what, notice.sentence(self._place.box), notice.is_over)]

    def _write(
        self,
        phase: str,
        cells: tuple[CellBeat, ...],
        journal: JournalEnd,
        webhooks: dict[str, Any],
        copying: Copying | None,
    ) -> None:
        place, known = self._place, self._secrets.known()
        first, read = cells[0] if cells else None, self._gauges()
        self._write_down(read, cells)
        beat = Heartbeat(
            queue=place.queue,
            box=place.box,
            release=place.release.name,
            at=timestamp.utc_now(),
            pid=os.getpid(),
            phase=phase,
            cell=first.cell if first else None,
            attempt=first.attempt if first else None,
            progress=first.progress if first else {},
            best=first.best if first else {},
            seen=first.seen if first else None,
            cells=cells if len(cells) > 1 else (),
            gauges=read,
            journal=journal,
            copying=copying,
            fetching=self._fetching,
            extra={"webhooks": known.left_out_of(webhooks)} if webhooks else {},
        )
        # A tier that fails for a moment costs a heartbeat; what has to be written says it itself.
        with contextlib.suppress(OSError):
            atomic.write_whole(place.durable.heartbeat(place.queue), codec.to_document(beat))


class _AtWork:
    """One cell that runs."""

    def __init__(self, attempt: int, gpus: tuple[str, ...]) -> None:
        self.attempt, self.gpus = attempt, gpus
        self.last_sign: Any = None
        self.named: dict[str, Any] = {}
        self.idle = IdleGpus()
        self.idle_news: dict[str, Any] | None = None
        self._next_event_at = time.monotonic() + PROGRESS_EVENT_S

    def is_worth_an_event(self, sign: Any) -> bool:
        """`sign` is what changes when the cell gets on: its step, else the job's numbers."""
        if sign is None or sign == self.last_sign or time.monotonic() < self._next_event_at:
            return False
        self.last_sign = sign
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
