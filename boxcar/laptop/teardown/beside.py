"""Whose else a box is that `down` is to end: one at work there, or with its only results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boxcar.laptop.fitness.other_runs import at_work
from boxcar.laptop.profiles.profile import Profile
from boxcar.laptop.teardown import proven_here
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.message import some
from boxcar.shared.record import dataclass
from boxcar.shared.wire.box_asks import OtherRun, OthersSeen

_MOST_NAMED = 4


@dataclass(frozen=True)
class Beside:
    """A run that is not the one that ends, and what the end of the box would do to it."""

    run: str
    what: str


@dataclass(frozen=True)
class OnBoxes:
    """`strangers` are other people's programs, and `doubts` why more may be there: in sentences."""

    runs: tuple[Beside, ...] = ()
    strangers: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def on_boxes(seen: Mapping[str, OthersSeen], doubts: Iterable[str] = ()) -> OnBoxes:
    """What was seen on each box, judged by what this machine has of it."""
    return OnBoxes(
        tuple(
            Beside(other.run, what)
            for box, one in seen.items()
            for other in one.runs
            for what in _harmed(box, other)
        ),
        tuple(
            Sentence("gate.stranger", box=box, pid=who.pid, program=who.program, user=who.user)
            for box, one in seen.items()
            for who in one.strangers
        ),
        tuple(doubts),
    )


def _harmed(box: str, other: OtherRun) -> list[str]:
    found: list[str] = []
    if other.is_at_work:
        found.append(Sentence("gate.works_beside", box=box, run=other.run, what=at_work(other)))
    if lost := proven_here.not_proven(other.run, other.results):
        cells = some(lost, _MOST_NAMED)
        found.append(
            Sentence("gate.results_beside", box=box, run=other.run, cells=cells, n=len(lost))
        )
    return found


def stays(profile: Profile) -> dict[str, bool]:
    """Of each tier's folder whether the verb which ends the box leaves it as it is."""
    kept = profile.meter_stop.preserves
    return {
        tier.path: name in kept
        for name, tier in profile.storage.tiers.items()
        if tier.path and tier.path.startswith(("/", "~/"))
    }
