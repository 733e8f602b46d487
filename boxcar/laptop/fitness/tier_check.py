"""Is the durable tier one place for all boxes? Each writes, all read, and one claim has one winner.

`probe` calls `onbox/answers/tier_check.py`; `judge` is pure. In another region a path of the
same name is another disk, and nothing else tells so before the results are missed.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boxcar.laptop.common import side_by_side
from boxcar.laptop.fitness.rules import ALL, Row
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.box_asks import TierProbed
from boxcar.shared.wire.question import A, Question


class Ask(Protocol):
    """As `OpenRun.ask`."""

    def __call__(self, box: str, question: Question[A], *, timeout_s: float = ...) -> A: ...


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

    def step(name: str, names: Sequence[str] = ()) -> dict[str, TierProbed]:
        return _all(ask, found, name, token, names)

    try:
        found.written = {box: str(told.sha256) for box, told in step("write").items()}
        read = step("read", list(found.written))
        found.seen = {box: dict(told.files or {}) for box, told in read.items()}
        found.winners = [box for box, told in step("claim").items() if told.has_won]
        found.owners = {box: told.owner for box, told in step("owner").items()}
    finally:
        # What cannot be cleaned is a few kB, and no reason to refuse a box.
        _all(ask, Probe(found.boxes), "clean", token, ())
    return found


def sharing(probe: Probe, suspects: Collection[str] = ()) -> frozenset[str]:
    """The boxes that the tier is one place for: without those that miss most of what others wrote.

    Where all miss as much, without `suspects`, which seem to have no tier at all; none where that
    does not tell either.
    """
    group = {box for box in probe.written if box in probe.seen}
    while group:
        missed = {box: sum(not _reads(box, other, probe) for other in group) for box in group}
        odd = {box for box in group if missed[box] == max(missed.values())}
        if not max(missed.values()):
            break
        group -= odd if odd != group else _told_apart(group, suspects)
    return frozenset(group)


def _told_apart(group: Collection[str], suspects: Collection[str]) -> set[str]:
    """The suspects of the group; all of it where they are none or all of it."""
    odd = {box for box in group if box in suspects}
    return odd or set(group)


def _reads(box: str, writer: str, probe: Probe) -> bool:
    return probe.seen.get(box, {}).get(writer) == probe.written[writer]


def judge_tier(probe: Probe, suspects: Collection[str] = ()) -> list[Row]:
    """A row for each box, and one for the claim of those that see one tier.

    A box that sees another tier than the others is refused, and not the others for it.
    """
    group = sharing(probe, suspects)
    rows = [_seen(box, probe, group) for box in probe.boxes]
    return [*rows, _claimed(probe, group)] if len(group) > 1 else rows


def _all(
    ask: Ask, found: Probe, step: str, token: str, names: Sequence[str]
) -> dict[str, TierProbed]:
    """The answers to one step of all boxes at once; who fails it is left out of the next."""
    boxes = [box for box in found.boxes if box not in found.problems]
    questions = [box_asks.TierProbe(step, token, box, tuple(names)) for box in boxes]
    pairs = zip(boxes, questions, strict=True)
    answers = side_by_side.each(pairs, lambda pair: _ask_one(ask, *pair))
    told = dict(zip(boxes, answers, strict=True))
    found.problems |= {box: one.problem for box, one in told.items() if one.problem is not None}
    return {box: one for box, one in told.items() if one.problem is None}


def _ask_one(ask: Ask, box: str, question: box_asks.TierProbe) -> TierProbed:
    try:
        return ask(box, question)
    except (BoxcarError, OSError) as error:
        return TierProbed(problem=words_of(error))


def _seen(box: str, probe: Probe, group: Collection[str]) -> Row:
    if box in probe.problems:
        return Row(box, "tier shared", "refuse", _("could not be tested"), probe.problems[box])
    seen, others = probe.seen[box], len(group) - 1
    if box in group:
        alone = _("no other box has it mounted")
        found = _("reads what {n} {n:other box|other boxes} wrote", n=others) if others else alone
        return Row(box, "tier shared", "ok", found)
    missed = [name for name in probe.written if seen[name] is None]
    if missed:
        found = _("does not see the files of {boxes}", boxes=", ".join(missed))
        return Row(
            box,
            "tier shared",
            "refuse",
            found,
            _(
                "same path, but different storage: another region or data center, or not mounted. "
                "Rent the boxes where the storage is"
            ),
        )
    wrong = [name for name in probe.written if not _reads(box, name, probe)]
    unread = [name for name in probe.written if not _reads(name, box, probe)]
    found = _("reads other content than {boxes} wrote", boxes=", ".join(wrong))
    if not wrong:
        found = _("{boxes} cannot read what it writes", boxes=", ".join(unread))
    return Row(box, "tier shared", "refuse", found, _("results there could not be trusted"))


def _claimed(probe: Probe, group: Collection[str]) -> Row:
    seen = {owner for box, owner in probe.owners.items() if box in group}
    # A box that is refused for other reasons may have won on the very same tier.
    winners = [box for box in probe.winners if box in group or box in seen]
    if len(winners) == 1 and seen == {winners[0]}:
        return Row(ALL, "claims", "ok", _("one of {n} won", n=len(group)))
    found = _(
        "won by {winners}, read as {owners}",
        winners=", ".join(winners) or _("nobody"),
        owners=", ".join(sorted(map(str, seen))) or _("nothing"),
    )
    return Row(
        ALL,
        "claims",
        "refuse",
        found,
        _("two boxes could run the same cell: this file system does not support exclusive create"),
    )
