"""What `sentinel` said of each run and how often a box was silent: pure, but for its one file.

A box is called silent by several witnesses: two looks some minutes apart at which it did not
answer, while the network of this machine worked. Nothing is ever ended for it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence

SILENT_LOOKS, SILENT_FOR_S = 2, 240.0
# Somewhat less than a day, or a daily cron would speak every other day.
DAY_S = 23.5 * 3600


@dataclass(frozen=True)
class Finding:
    """`key` stays the same while it stands; the text says how long by now."""

    who: str
    text: str
    key: str


@dataclass(frozen=True)
class Silence:
    """At how many looks in a row, and since when, a box did not answer."""

    looks: int
    since: str

    def is_proven(self, now: str) -> bool:
        return self.looks >= SILENT_LOOKS and self.for_s(now) >= SILENT_FOR_S

    def for_s(self, now: str) -> float:
        return timestamp.seconds_between(self.since, now)


@dataclass(frozen=True)
class Memory:
    """Of one run: the keys of what was said last and when, and the silences by box."""

    said: tuple[str, ...] = ()
    said_at: str | None = None
    silences: Mapping[str, Silence] | None = None

    def silence_of(self, box: str) -> Silence | None:
        return (self.silences or {}).get(box)


def silences_after_look(
    before: Memory, silent: Sequence[str], now: str, *, has_network: bool
) -> dict[str, Silence]:
    """Without a network of our own nothing is known of any box, and nothing counts."""
    if not has_network:
        return dict(before.silences or {})
    found = {}
    for box in silent:
        known = before.silence_of(box)
        found[box] = Silence(known.looks + 1, known.since) if known else Silence(1, now)
    return found


def is_to_say(before: Memory, found: Sequence[Finding], now: str) -> bool:
    """Whatever is new or over, and at least once a day what stands, be it nothing."""
    if before.said_at is None or {one.key for one in found} != {*before.said}:
        return True
    # A clock that was set back must not keep us silent.
    return now < before.said_at or timestamp.seconds_between(before.said_at, now) >= DAY_S


def key_of(who: str, text: str) -> str:
    """By the sentence without its numbers, which differ at each look."""
    return f"{who}: {text.template if isinstance(text, Sentence) else text}"


def read_memories(path: Path) -> dict[str, Memory]:
    """By run and job file; one that cannot be read is none, and everything is said anew."""
    try:
        record = json.loads(path.read_bytes())
        return {str(key): _memory(one) for key, one in record["runs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_memories(path: Path, memories: Mapping[str, Memory]) -> None:
    """A home that cannot be written keeps nobody silent: all is said again."""
    runs = {
        key: {
            "said": list(one.said),
            "said_at": one.said_at,
            "silences": {
                box: {"looks": each.looks, "since": each.since}
                for box, each in (one.silences or {}).items()
            },
        }
        for key, one in memories.items()
    }
    with contextlib.suppress(OSError):
        atomic.make_folder(path.parent)
        atomic.write_whole(path, json.dumps({"runs": runs}, indent=1).encode())


def _memory(record: Mapping[str, Any]) -> Memory:
    silences = {
        str(box): Silence(int(one["looks"]), _instant(one["since"]))
        for box, one in record["silences"].items()
    }
    said_at = record["said_at"]
    said = tuple(str(one) for one in record["said"])
    return Memory(said, said_at and _instant(said_at), silences)


def _instant(text: str) -> str:
    timestamp.parse_utc(text)
    return text
