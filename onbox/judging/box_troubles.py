"""What a person should know of a box before a cell fails of it: warned once, cleared once. Pure.

Two minutes decide either way: a card is slowed for a second now and then, and a disk's rate is none
over seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.triage.xids import is_of_card

HOLD_S = 120.0
# A rate is told by what changed in this time, and no sooner.
SPAN_S, LEAST_SPAN_S = 600.0, 300.0
FULL_WITHIN_S = 2 * 3600.0
NEAR_LIMIT, FULL_SHM = 0.95, 0.05
STRANGE_BYTES = 1 << 30
_GIB = 1 << 30

Reading = Mapping[str, Any]


@dataclass(frozen=True)
class Trouble:
    """`is_over`: it was warned of, and is no more."""

    what: str
    text: Sentence
    is_over: bool = False


class BoxTroubles:
    """Follows the readings one by one."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # of each that is there, or is gone, since when
        self._told: dict[str, Sentence] = {}
        self._disks: deque[tuple[float, Reading]] = deque()
        self._idle_since_s: float | None = None

    def look(self, reading: Reading, now_s: float, *, is_at_work: bool) -> list[Trouble]:
        """What is to be said now; `now_s` is of a clock that never goes back."""
        self._remember(reading, now_s, is_at_work=is_at_work)
        there = self._there(reading, now_s)
        found = []
        for what in {**there, **self._told}:
            if (what in there) == (what in self._told):
                self._since.pop(what, None)
            elif now_s - self._since.setdefault(what, now_s) >= HOLD_S:
                del self._since[what]
                if what in there:
                    self._told[what] = there[what]
                    found.append(Trouble(what, there[what]))
                else:
                    over = _("over: {text}", text=self._told.pop(what))
                    found.append(Trouble(what, over, is_over=True))
        self._since = {
            what: at for what, at in self._since.items() if what in {*there, *self._told}
        }
        return found

    def _remember(self, reading: Reading, now_s: float, *, is_at_work: bool) -> None:
        self._disks.append((now_s, reading))
        while now_s - self._disks[0][0] > SPAN_S:
            self._disks.popleft()
        if is_at_work:
            self._idle_since_s = None
        elif self._idle_since_s is None:
            self._idle_since_s = now_s

    def _there(self, reading: Reading, now_s: float) -> dict[str, Sentence]:
        found = _memory(reading) | _shm(reading) | self._room(reading)
        is_idle = self._idle_since_s is not None and now_s - self._idle_since_s >= HOLD_S
        for index, card in enumerate(reading.get("gpus", ())):
            found |= _card(index, card, is_idle=is_idle)
        return found

    def _room(self, reading: Reading) -> dict[str, Sentence]:
        """What is full in some time, if it goes on like this."""
        found = {}
        begun_s, before = self._disks[0]
        span_s = self._disks[-1][0] - begun_s
        for name, template in _ROOM.items():
            if span_s < LEAST_SPAN_S or name not in reading or name not in before:
                continue
            per_s = (before[name] - reading[name]) / span_s
            if per_s > 0 and (left_s := reading[name] / per_s) < FULL_WITHIN_S:
                found[f"full_{name}"] = Sentence(template, minutes=left_s / 60)
        return found


_ROOM = {
    "scratch_free_bytes": mark("scratch is full in about {minutes:.0f} min at this rate"),
    "scratch_free_inodes": mark(
        "scratch: no inodes left in about {minutes:.0f} min at this rate (many small files)"
    ),
    "durable_free_bytes": mark("the durable tier is full in about {minutes:.0f} min at this rate"),
    "durable_free_inodes": mark(
        "the durable tier: no inodes left in about {minutes:.0f} min at this rate (many small "
        "files)"
    ),
}


def _memory(reading: Reading) -> dict[str, Sentence]:
    """What the kernel could give back at once, its cache of files, is not used."""
    used, limit = reading.get("memory_used_bytes"), reading.get("memory_limit_bytes")
    if not used or not limit:
        return {}
    used -= reading.get("memory_cache_bytes", 0)
    if used < NEAR_LIMIT * limit:
        return {}
    text = _(
        "memory: {used:.1f} of {limit:.1f} GiB; beyond that a process of the cell is killed",
        used=used / _GIB,
        limit=limit / _GIB,
    )
    return {"memory_near_limit": text}


def _shm(reading: Reading) -> dict[str, Sentence]:
    free, size = reading.get("shm_free_bytes"), reading.get("shm_size_bytes")
    if not size or free is None or free >= FULL_SHM * size:
        return {}
    text = _("/dev/shm is nearly full: {n} MiB left, and data loaders need it", n=free >> 20)
    return {"shm_full": text}


def _card(index: int, card: Reading, *, is_idle: bool) -> dict[str, Sentence]:
    found = {}
    if reasons := card.get("slowed_by"):
        text = _(
            "GPU {index} is slowed down: {reasons}, at {heat} °C",
            index=index,
            reasons=", ".join(reasons),
            heat=card.get("temperature_c", "?"),
        )
        found[f"gpu_slowed_{index}"] = text
    if errors := card.get("ecc_errors"):
        text = _(
            "GPU {index}: {n} memory {n:error|errors} that nothing corrected: numbers may be "
            "wrong; restart the box or take another",
            index=index,
            n=errors,
        )
        found[f"gpu_ecc_{index}"] = text
    if (xid := card.get("xid")) is not None and is_of_card(xid):
        text = _(
            "GPU {index}: the driver reports Xid {xid}, an error of the card itself: restart the "
            "box, and take another one if it comes again",
            index=index,
            xid=xid,
        )
        found[f"gpu_xid_{index}"] = text
    used = card.get("memory_used_bytes", 0)
    if is_idle and used >= STRANGE_BYTES:
        text = _(
            "GPU {index}: {used:.1f} GiB are in use while no cell runs here: somebody else's, or "
            "left by a dead process",
            index=index,
            used=used / _GIB,
        )
        found[f"gpu_strange_{index}"] = text
    return found
