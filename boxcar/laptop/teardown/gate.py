"""The gate before a teardown: open, or the list of what is missing. Pure.

It opens only when every cell of the roster is proven to lie here (or was abandoned by name), as it
was when `verify` wrote the receipt; when nothing works on the boxes any more; and when a person has
approved this very receipt. Whatever is unknown counts as missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from boxcar.laptop.common.near import the_run, unknown_of
from boxcar.laptop.results import results_folder
from boxcar.laptop.results.judge import CellFacts, judge_cell, missing
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.teardown.still_running import Beside
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.files import codec
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import CellVerdict, RunReceipt, Teardown
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

SHORTEST_APPROVAL = 12
TYPED = "typed"
GIVEN = "--approve"
CONTINUED = "continued"


@dataclass(frozen=True)
class Approval:
    """How the person approved, and what they typed: the run's name, or a receipt's digest.

    CONTINUED is the digest of a teardown that was approved and did not come to its end. `beside`
    are the other runs on its boxes that the person named, too, and `boxes` those whose id was typed
    because they end for good.
    """

    how: str
    text: str
    beside: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GateFacts:
    """Everything that the gate looks at, as it is now.

    `cells` are the roster's. `doubts` is what could not be made certain. `alive` says what still
    works on the boxes. `artifacts` are the job's, `other_artifacts` of the cells with others.
    `tier` is the path of the durable tier, `is_tier_gone`: a person says that it is gone for good.
    `beside` are other runs that the end of the boxes would harm. `to_destroy`: by box the id of
    those that Boxcar can end for good by `verb`.
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
    verb: str = ""
    to_destroy: Mapping[str, str] = field(default_factory=dict)

    @property
    def approval_digest(self) -> str:
        """What `--approve` has to name: the receipt, and with boxes that end for good also the verb
        and their ids.
        """
        of_receipt = self.receipt.digest if self.receipt else ""
        if not self.to_destroy:
            return of_receipt
        return digest.of_json([of_receipt, self.verb, sorted(self.to_destroy.items())])

    def artifacts_of(self, cell: str) -> tuple[Artifact, ...]:
        return self.other_artifacts.get(cell, self.artifacts)


@dataclass(frozen=True)
class Open:
    digest: str


@dataclass(frozen=True)
class Refused:
    reasons: tuple[Missing, ...]


def decide(facts: GateFacts) -> Open | Refused:
    missing_first = obstacles(facts)
    # An approval alone would be refused again while results are missing.
    is_asked_for = facts.approval is not None or not missing_first
    reasons = (
        *missing_first,
        *_beside(facts),
        *(_not_approved(facts) if is_asked_for else ()),
    )
    if reasons or facts.receipt is None:
        return Refused(reasons)
    return Open(facts.receipt.digest)


def obstacles(facts: GateFacts) -> tuple[Missing, ...]:
    """Everything that is missing but the approval: what a person can fix before they are asked."""
    return (*facts.doubts, *facts.alive, *_tier(facts), *_receipt(facts), *_cells(facts))


def _tier(facts: GateFacts) -> Iterator[Missing]:
    is_going_on = facts.approval is not None and facts.approval.how == CONTINUED
    if not (facts.is_tier_there or is_going_on or facts.is_tier_gone):
        what = _(
            "the run is not on its durable tier, {tier}, so the results cannot be compared with "
            "it. Mount the tier. A run that was never launched needs no teardown",
            tier=facts.tier,
        )
        yield Missing(None, what, tier_is_gone(facts.tier))


def tier_is_gone(tier: str) -> Command:
    """What a person types who knows that it will never be seen again."""
    words = ("--gone", tier, "--because", "…")
    return Command("down", words, note=_("only for a tier that is gone for good"))


def _receipt(facts: GateFacts) -> Iterator[Missing]:
    if not facts.cells:
        yield Missing(
            None, _("there are no expected cells: nothing is known about this run"), Command("plan")
        )
    if facts.receipt is None:
        yield Missing(None, _("there is no receipt yet"), Command("verify"))
    elif facts.receipt.run != facts.run:
        what = _(
            "the receipt belongs to run {found!r}, expected {run!r}",
            found=facts.receipt.run,
            run=facts.run,
        )
        yield Missing(None, what, Command("verify"))
    else:
        roster = {cell.cell for cell in facts.cells}
        for verdict in facts.receipt.cells:
            if verdict.cell not in roster:
                what = _(
                    "{cells:is|are} in the receipt, but no longer {cells:an expected cell|expected "
                    "cells}",
                    cells=1,
                )
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
                Missing(
                    cell.cell, _("{cells:is|are} not in the receipt", cells=1), Command("verify")
                ),
            )
        elif verdict.because is None:
            yield from rows or _unlike(verdict, cell, rows)
        elif facts.is_tier_there or verdict.manifest_sha256 != cell.manifest_sha256:
            yield from _unlike(verdict, cell, rows)


def _unlike(verdict: CellVerdict, cell: CellFacts, rows: tuple[Missing, ...]) -> Iterator[Missing]:
    """What is approved is what the receipt says: neither better nor worse."""
    now = tuple(row.what for row in rows)
    if (verdict.manifest_sha256, verdict.missing) != (cell.manifest_sha256, now):
        yield Missing(
            cell.cell,
            _("{cells:has|have} changed since the receipt was made", cells=1),
            Command("verify"),
        )


def _beside(facts: GateFacts) -> Iterator[Missing]:
    """Who ends a box that others are on says so for each of them."""
    named = facts.approval.beside if facts.approval else ()
    for one in facts.beside:
        if one.run not in named:
            note = _("and type {run} when asked, to end the box anyway", run=one.run)
            yield Missing(None, one.what, Command("down", note=note))


def _not_approved(facts: GateFacts) -> Iterator[Missing]:
    if facts.receipt is None:
        return
    wanted, approval = facts.approval_digest, facts.approval
    command = Command("down", ("--approve", digest.short(wanted)))
    if approval is None:
        yield Missing(None, _("not approved yet"), command)
    elif approval.how == TYPED:
        if approval.text != facts.run:
            what = _(
                "expected the run's name {run!r}, found {typed!r}",
                run=facts.run,
                typed=approval.text,
            )
            yield Missing(None, what, Command("down"))
    elif approval.how == GIVEN:
        if len(approval.text) < SHORTEST_APPROVAL or not wanted.startswith(approval.text):
            what = _(
                "{given!r} approves other results than the current ones ({digest}). Review these, "
                "then approve them",
                given=approval.text,
                digest=digest.short(wanted),
            )
            yield Missing(None, what, command)
    elif approval.how != CONTINUED or approval.text != facts.receipt.digest:
        yield Missing(None, _("the teardown in progress was approved for other results"), command)


# Giving a cell up, by name and with a reason: it is written into the receipt, and said.


def reasons_to_give_up(
    cells: Sequence[str], gone: Sequence[str], because: str | Sequence[str] | None
) -> dict[str, str]:
    """Why each of these is given up: one reason for all, or one for each in their order. Raises
    InputError unless what is given up comes with a reason, and a reason with something.
    """
    whys = [because] if isinstance(because, str) else list(because or ())
    given_up = [*(f"--abandon {cell}" for cell in cells), *(f"--gone {box}" for box in gone)]
    if given_up and not (whys and all(why.strip() for why in whys)):
        raise InputError(_('{given_up} needs a reason: --because "..."', given_up=given_up[0]))
    if whys and not given_up:
        raise InputError(_("--because goes with --abandon CELL or --gone BOX"))
    if len(whys) == 1:
        whys *= len(given_up)
    if len(whys) != len(given_up) or (len(set(whys)) > 1 and cells and gone):
        raise InputError(
            _(
                "{n} given up ({given_up}), but {reasons} reasons: give one --because for all, or "
                "one for each cell or box in the same order",
                n=len(given_up),
                given_up=", ".join(given_up),
                reasons=len(whys),
            )
        )
    return dict(zip([*cells, *gone], whys, strict=True))


def give_up(results: ResultPaths, facts: GateFacts, cells: Mapping[str, str]) -> RunReceipt:
    """Write the receipt in which `cells` are given up, each for its reason. Raises InputError, with
    nothing written.

    It needs no receipt of `verify`: a run that cannot be verified must have a way out.
    """
    found = {cell: _verdict(facts, cell, because) for cell, because in cells.items()}
    if problems := [text for text in found.values() if isinstance(text, Message)]:
        raise InputError(problems)
    given_up = {cell: new for cell, new in found.items() if isinstance(new, CellVerdict)}
    before = facts.receipt or _receipt_of_nothing(results, facts)
    verdicts = {verdict.cell: verdict for verdict in before.cells} | given_up
    made = replace(before, cells=tuple(verdicts.values()))
    atomic.write_whole(results.receipt, codec.to_document(made))
    return made


def _receipt_of_nothing(results: ResultPaths, facts: GateFacts) -> RunReceipt:
    """For where none could be read: no artifact of it was loaded, so it settles no cell."""
    if results.receipt.exists():
        results_folder.set_aside(results, results.receipt)
    return RunReceipt(facts.run, timestamp.utc_now(), tuple(_unloaded(facts)))


def _unloaded(facts: GateFacts) -> Iterator[CellVerdict]:
    for cell in facts.cells:
        artifacts = facts.artifacts_of(cell.cell)
        rows = missing(cell, (), artifacts=artifacts, is_tier_there=facts.is_tier_there)
        yield judge_cell(cell, rows, (), None)


def _verdict(facts: GateFacts, cell: str, because: str) -> CellVerdict | Message:
    """The cell as it is now and given up, or why it cannot be."""
    now = {known.cell: known for known in facts.cells}
    seen = {verdict.cell: verdict for verdict in facts.receipt.cells} if facts.receipt else {}
    if cell not in now:
        return unknown_of(cell, now, what="cell", of=the_run(facts.run))
    findings = seen[cell].findings if cell in seen else ()
    rows = missing(
        now[cell],
        findings,
        artifacts=facts.artifacts_of(cell),
        is_tier_there=facts.is_tier_there,
    )
    if not rows:
        return Message(
            _("{cell}: nothing is missing, so there is nothing to abandon", cell=cell),
            Command("verify"),
        )
    return judge_cell(now[cell], rows, findings, because)


# An approved teardown as it lies beside the results: each step is written before it counts.
#
# A `down` that goes on reads here what was done before it: on which boxes Boxcar's own part is
# done, which were told to end themselves, and which were seen to have done so.


class Steps:
    """`path` is teardown.json, `now` what it holds. For several threads at once."""

    def __init__(self, path: Path, begun: Teardown) -> None:
        """Writes `begun` down."""
        self._path, self._lock, self.now = path, threading.Lock(), begun
        self._keep()

    def ended(self, box: str) -> None:
        """Nothing of the run will start there again, and its secrets are gone."""
        self._note("boxes", box)

    def told(self, box: str) -> None:
        """The platform's verb has begun on that box."""
        self._note("told", box)

    def untold(self, box: str) -> None:
        """It has begun there and refused."""
        with self._lock:
            told = {name: at for name, at in self.now.told.items() if name != box}
            self._keep(told=told)

    def off(self, box: str) -> None:
        """It was told, and has fallen silent."""
        self._note("off", box)

    def seen_gone(self, box: str) -> None:
        """The provider's own list has it no more."""
        self._note("seen_gone", box)

    def stopped(self, box: str) -> None:
        """The provider says twice that it is stopped; its disk bills."""
        self._note("stopped", box)

    def seen_off(self, box: str) -> None:
        """A person says that its meter was seen to end."""
        self._note("seen_off", box)

    def rotated(self, credential: str) -> None:
        """A person says that it was replaced where it was made."""
        self._note("rotated", credential)

    def finished(self) -> None:
        with self._lock:
            self._keep(finished_at=timestamp.utc_now())

    def _note(self, step: str, box: str) -> None:
        with self._lock:
            self._keep(**{step: getattr(self.now, step) | {box: timestamp.utc_now()}})

    def _keep(self, **done: Any) -> None:
        now = replace(self.now, **done)
        atomic.write_whole(self._path, codec.to_document(now))
        self.now = now
