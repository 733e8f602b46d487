"""Looks after the cells that run: whether one stands still, and whether a number of one is none.

What it finds is told by `news`; where the job says so, the attempt is ended for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from boxcar.shared.cell import duration
from boxcar.shared.files.heartbeat import CellBeat
from boxcar.shared.files.plan import LOG
from boxcar.shared.news.wanted import NAN, STALLED
from boxcar.shared.sentence import Sentence, _, mark
from onbox.agent.black_box import BlackBox, Gathered
from onbox.judging.stalls import START, Stall, Stalls
from onbox.machine.place import Place


class CellWatch:
    def __init__(
        self,
        place: Place,
        keep_gauges: Callable[[Path], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place, self._clock = place, clock
        self._stalls, self._black_box = Stalls(), BlackBox(place, keep_gauges)
        self._begun: dict[str, _Begun] = {}
        self._news: list[dict[str, Any]] = []

    def begins(self, cell: str, step: Any) -> None:
        """An attempt; `step` is what an earlier one had reported last."""
        self._begun[cell] = _Begun(step)

    def ends(self, cell: str) -> None:
        self._begun.pop(cell, None)
        self._stalls.ends(cell)

    def look(self, beat: CellBeat, log_bytes: int, numbers: Mapping[str, Any]) -> None:
        """`numbers` are those that the job names; None: what was found is no number."""
        cell, seen, begun = beat.cell, beat.seen, self._begun[beat.cell]
        attempt = beat.attempt or 0
        is_stepping = beat.progress.get("step", begun.step) != begun.step or (
            seen is not None and (seen.step is not None or seen.epoch is not None)
        )
        sign = log_bytes, dict(beat.progress), seen
        now_s = self._clock()
        stall = self._stalls.look(cell, attempt, sign, now_s, is_stepping=is_stepping)
        if stall and stall.is_over:
            self._news.append(_told(stall, _goes_on(stall)))
        elif stall:
            self._black_box.gather(stall)
        if self._place.plan.ends_at_nan and not begun.has_ended:
            self._end_at_nan(beat, begun, numbers)

    def news(self) -> list[dict[str, Any]]:
        """What warnings say of cells, each once."""
        for gathered in self._black_box.ready():
            self._take(gathered)
        found, self._news = self._news, []
        return found

    def _take(self, gathered: Gathered) -> None:
        stall = gathered.stall
        if gathered.is_at_work:
            self._stalls.works(stall.cell)
            return
        if not self._stalls.stands_still(stall):
            return  # it went on, or ended, while it was looked at
        ends = self._place.plan.ends_stalled
        text = _stands_still(stall, ends=ends)
        if gathered.stacks_of:
            about = {"n": gathered.stacks_of, "folder": _folder(self._place, stall)}
            text = _(
                "{first} The stacks of {n} {n:rank|ranks} are in {folder}.", first=text, **about
            )
        self._news.append(_told(stall, text) | ({"ends": True} if ends else {}))

    def _end_at_nan(self, beat: CellBeat, begun: _Begun, numbers: Mapping[str, Any]) -> None:
        out = self._place.scratch.out(beat.cell)
        of_others = {m.name: out / m.of for m in self._place.plan.metrics if m.source != LOG}
        odd = [
            name
            for name, value in numbers.items()
            if value is None and (name not in of_others or begun.is_newer(of_others[name]))
        ]
        if not odd:
            return
        begun.has_ended = True
        text = _(
            "{cell}: {names} {n:is|are} not a number any more; attempt {attempt} is ended "
            "(when_nan: end)",
            cell=beat.cell,
            names=", ".join(odd),
            n=len(odd),
            attempt=beat.attempt or 0,
        )
        about = {"what": NAN, "cell": beat.cell, "attempt": beat.attempt, "text": text}
        self._news.append(about | {"ends": True})


class _Begun:
    def __init__(self, step: Any) -> None:
        self.step, self.has_ended = step, False
        self._at_s = time.time()

    def is_newer(self, path: Path) -> bool:
        """Whether a file is this attempt's; an earlier one may have left the same."""
        try:
            return path.stat().st_mtime >= self._at_s
        except OSError:
            return False


def _told(stall: Stall, text: Sentence) -> dict[str, Any]:
    return {
        "what": STALLED,
        "cell": stall.cell,
        "attempt": stall.attempt,
        "phase": stall.phase,
        "seconds": round(stall.silent_s),
        "text": text,
        "is_over": stall.is_over,
    }


def _stands_still(stall: Stall, *, ends: bool) -> Sentence:
    template = (
        mark("{cell} has made no first step for {time}; in this run {limit} is long. {what}")
        if stall.phase == START
        else mark("{cell} has made no progress for {time}; in this run {limit} is long. {what}")
    )
    what = (
        _("Attempt {attempt} is ended and resumed (when_stalled: end).", attempt=stall.attempt)
        if ends
        else _("It was left alone.")
    )
    about = {"cell": stall.cell, "what": what, "time": _spelled(stall.silent_s)}
    return Sentence(template, **about, limit=_spelled(stall.limit_s))


def _goes_on(stall: Stall) -> Sentence:
    time_ = _spelled(stall.silent_s)
    return _("{cell} makes progress again, after {time} without", cell=stall.cell, time=time_)


def _spelled(seconds: float) -> str:
    return str(duration.spell_duration(max(60, round(seconds / 60) * 60)))


def _folder(place: Place, stall: Stall) -> str:
    return str(place.durable.black_box(stall.cell).relative_to(place.durable.root))
