"""Is the durable tier one place for all boxes? Each writes, all read, and one claim has one winner.

`probe` calls `onbox/answers/tier_check.py`; `judge` is pure. In another region a path of the
same name is another disk, and nothing else tells so before the results are missed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from boxcar.laptop.fitness.rules import ALL, Row
from boxcar.shared.errors import BoxcarError
from boxcar.shared.message import counted

Ask = Callable[..., dict[str, Any]]
MOST_AT_ONCE = 20


@dataclass
class Probe:
    """What the boxes said. `written`: digests; `seen`: reader -> writer -> digest, None: not there.

    `problems`: a box -> why a step failed there.
    """

    boxes: tuple[str, ...]
    written: dict[str, str] = field(default_factory=dict)
    seen: dict[str, dict[str, str | None]] = field(default_factory=dict)
    winners: list[str] = field(default_factory=list)
    owners: dict[str, str | None] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def is_shared(self) -> bool:
        """Whether every box saw what every box wrote, byte for byte."""
        return len(self.written) == len(self.boxes) and all(
            self.seen.get(box) == self.written for box in self.boxes
        )


def probe(ask: Ask, boxes: Sequence[str]) -> Probe:
    """Try it. A box that fails a step is a problem of the probe's, never an exception."""
    found, token = Probe(tuple(boxes)), secrets.token_hex(8)

    def step(name: str, **request: Any) -> dict[str, dict[str, Any]]:
        return _all(ask, found, {"step": name, "token": token, **request})

    try:
        found.written = {box: said["sha256"] for box, said in step("write").items()}
        names = list(found.written)
        found.seen = {box: said["files"] for box, said in step("read", names=names).items()}
        found.winners = [box for box, said in step("claim").items() if said["has_won"]]
        found.owners = {box: said["owner"] for box, said in step("owner").items()}
    finally:
        # What cannot be cleaned is a few kB, and no reason to refuse a box.
        _all(ask, Probe(found.boxes), {"step": "clean", "token": token})
    return found


def judge(probe: Probe) -> list[Row]:
    """A row for each box, and one for the claim where all of them see one tier."""
    rows = [_seen(box, probe) for box in probe.boxes]
    return [*rows, _claimed(probe)] if probe.is_shared else rows


def _all(ask: Ask, found: Probe, request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The answers to one step of all boxes at once; who fails it is left out of the next."""
    boxes = [box for box in found.boxes if box not in found.problems]
    if not boxes:
        return {}
    with ThreadPoolExecutor(min(len(boxes), MOST_AT_ONCE)) as pool:
        answers = list(pool.map(lambda box: _ask_one(ask, box, request), boxes))
    said = dict(zip(boxes, answers, strict=True))
    found.problems |= {box: told["problem"] for box, told in said.items() if "problem" in told}
    return {box: told for box, told in said.items() if "problem" not in told}


def _ask_one(ask: Ask, box: str, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return ask(box, "tier_probe", name=box, **request)
    except (BoxcarError, OSError) as error:
        return {"problem": str(error)}


def _seen(box: str, probe: Probe) -> Row:
    if box in probe.problems:
        return Row(box, "tier shared", "refuse", "could not be tried", probe.problems[box])
    seen = probe.seen[box]
    missed = [name for name in probe.written if seen[name] is None]
    if missed:
        reason = (
            "the path is the same and the storage is another one: another region or data center, "
            "or not mounted. Rent the boxes where the storage is"
        )
        return Row(box, "tier shared", "refuse", f"does not see {', '.join(missed)}", reason)
    wrong = [name for name, sha256 in probe.written.items() if seen[name] != sha256]
    if wrong:
        found = f"reads {', '.join(wrong)} otherwise than written"
        return Row(box, "tier shared", "refuse", found, "no result could be believed there")
    others = len(probe.written) - (box in probe.written)
    return Row(
        box, "tier shared", "ok", f"reads what {counted(others, 'other box', 'other boxes')} wrote"
    )


def _claimed(probe: Probe) -> Row:
    winners, seen = probe.winners, set(probe.owners.values())
    if len(winners) == 1 and seen == {winners[0]}:
        return Row(ALL, "claims", "ok", f"one of {len(probe.boxes)} won")
    reason = "two boxes could run one cell at once: this file system does not create exclusively"
    owners = ", ".join(sorted(map(str, seen)))
    found = f"won by {', '.join(winners) or 'nobody'}, read as {owners or 'nothing'}"
    return Row(ALL, "claims", "refuse", found, reason)
