"""The gate before a teardown: open, or the list of what is missing. Pure.

It opens only when every cell of the roster is proven to lie here (or was abandoned by name), as it
was when `verify` wrote the receipt; when nothing works on the boxes any more; and when a person has
approved this very receipt. Whatever is unknown counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from boxcar.laptop.results.judge import CellFacts, missing
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.teardown.beside import Beside
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import digest
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import CellVerdict, RunReceipt
from boxcar.shared.message import Command
from boxcar.shared.record import dataclass

SHORTEST_APPROVAL = 12
TYPED = "typed"
GIVEN = "--approve"
CONTINUED = "continued"


@dataclass(frozen=True)
class Approval:
    """How the person approved, and what they typed: the run's name, or a receipt's digest.

    CONTINUED is the digest of a teardown that was approved and did not come to its end. `beside`
    are the other runs on its boxes that the person named, too.
    """

    how: str
    text: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class GateFacts:
    """Everything that the gate looks at, as it is now.

    `cells` are the roster's. `doubts` is what could not be made certain. `alive` says what still
    works on the boxes. `artifacts` are the job's, `other_artifacts` of the cells with others.
    `tier` is the path of the durable tier, `is_tier_gone`: a person says that it is gone for good.
    `beside` are other runs that the end of the boxes would harm.
    """

    run: str
    cells: tuple[CellFacts, ...]
    artifacts: tuple[Artifact, ...]
    doubts: tuple[Missing, ...]
    alive: tuple[Missing, ...]
    is_tier_there: bool
    receipt: RunReceipt | None
    approval: Approval | None
    other_artifacts: Mapping[str, tuple[Artifact, ...]] = field(default_factory=dict)
    tier: str = ""
    is_tier_gone: bool = False
    beside: tuple[Beside, ...] = ()

    def artifacts_of(self, cell: str) -> tuple[Artifact, ...]:
        return self.other_artifacts.get(cell, self.artifacts)


@dataclass(frozen=True)
class Open:
    digest: str


@dataclass(frozen=True)
class Refused:
    reasons: tuple[Missing, ...]


def decide(facts: GateFacts) -> Open | Refused:
    reasons = (*obstacles(facts), *_beside(facts), *_not_approved(facts))
    if reasons or facts.receipt is None:
        return Refused(reasons)
    return Open(facts.receipt.digest)


def obstacles(facts: GateFacts) -> tuple[Missing, ...]:
    """Everything that is missing but the approval: what a person can fix before they are asked."""
    return (*facts.doubts, *facts.alive, *_tier(facts), *_receipt(facts), *_cells(facts))


def _tier(facts: GateFacts) -> Iterator[Missing]:
    is_going_on = facts.approval is not None and facts.approval.how == CONTINUED
    if not (facts.is_tier_there or is_going_on or facts.is_tier_gone):
        what = Sentence("gate.no_tier", tier=facts.tier)
        yield Missing(None, what, tier_is_gone(facts.tier))


def tier_is_gone(tier: str) -> Command:
    """What a person types who knows that it will never be seen again."""
    words = ("--gone", tier, "--because", "…")
    return Command("down", words, note=Sentence("gate.tier_gone"))


def _receipt(facts: GateFacts) -> Iterator[Missing]:
    if not facts.cells:
        yield Missing(None, Sentence("gate.empty_roster"), Command("plan"))
    if facts.receipt is None:
        yield Missing(None, Sentence("gate.no_receipt"), Command("verify"))
    elif facts.receipt.run != facts.run:
        what = Sentence("gate.other_receipt", found=facts.receipt.run, run=facts.run)
        yield Missing(None, what, Command("verify"))
    else:
        roster = {cell.cell for cell in facts.cells}
        for verdict in facts.receipt.cells:
            if verdict.cell not in roster:
                what = Sentence("gate.not_in_roster")
                yield Missing(verdict.cell, what, Command("verify"))


def _cells(facts: GateFacts) -> Iterator[Missing]:
    verdicts = {verdict.cell: verdict for verdict in facts.receipt.cells} if facts.receipt else {}
    for cell in facts.cells:
        verdict = verdicts.get(cell.cell)
        rows = missing(
            cell,
            verdict.findings if verdict else (),
            artifacts=facts.artifacts_of(cell.cell),
            is_tier_there=facts.is_tier_there,
        )
        if verdict is None:
            yield from rows or (
                Missing(cell.cell, Sentence("gate.not_in_receipt"), Command("verify")),
            )
        elif verdict.because is None:
            yield from rows or _unlike(verdict, cell, rows)
        elif facts.is_tier_there or verdict.manifest_sha256 != cell.manifest_sha256:
            yield from _unlike(verdict, cell, rows)


def _unlike(verdict: CellVerdict, cell: CellFacts, rows: tuple[Missing, ...]) -> Iterator[Missing]:
    """What is approved is what the receipt says: neither better nor worse."""
    now = tuple(row.what for row in rows)
    if (verdict.manifest_sha256, verdict.missing) != (cell.manifest_sha256, now):
        yield Missing(cell.cell, Sentence("gate.changed_since"), Command("verify"))


def _beside(facts: GateFacts) -> Iterator[Missing]:
    """Who ends a box that others are on says so for each of them."""
    named = facts.approval.beside if facts.approval else ()
    for one in facts.beside:
        if one.run not in named:
            note = Sentence("gate.type_beside_note", run=one.run)
            yield Missing(None, one.what, Command("down", note=note))


def _not_approved(facts: GateFacts) -> Iterator[Missing]:
    if facts.receipt is None:
        return
    wanted, approval = facts.receipt.digest, facts.approval
    command = Command("down", ("--approve", digest.short(wanted)))
    if approval is None:
        yield Missing(None, Sentence("gate.not_approved"), command)
    elif approval.how == TYPED:
        if approval.text != facts.run:
            what = Sentence("gate.not_the_name", run=facts.run, typed=approval.text)
            yield Missing(None, what, Command("down"))
    elif approval.how == GIVEN:
        if len(approval.text) < SHORTEST_APPROVAL or not wanted.startswith(approval.text):
            what = Sentence("gate.other_state", given=approval.text, digest=digest.short(wanted))
            yield Missing(None, what, command)
    elif approval.how != CONTINUED or approval.text != wanted:
        yield Missing(None, Sentence("gate.other_results"), command)
