"""Which results lie here proven, whatever a tier says by now. Pure.

The proof is the one of `verify`: each file is as the manifest says, and each artifact was loaded
and nothing is wrong with it. Who loaded it may be this machine, or the box that made it: its
receipt lies beside the manifest and is bound to it. What this machine found counts above that.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.results.judge import CellFacts, missing
from boxcar.laptop.run.missing import Missing
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import CellReceipt, CellVerdict, Finding
from boxcar.shared.message import Command
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Proof:
    """`at`: when the artifacts were loaded; `unpickled`: files that a person had allowed to run
    code then. `lacks` is empty where the result is proven.
    """

    at: str
    unpickled: tuple[str, ...]
    lacks: tuple[Missing, ...]

    @property
    def is_only_unseen(self) -> bool:
        """Whether nothing speaks against the result, and nobody has looked into it."""
        return bool(self.lacks) and all(row.command == Command("verify") for row in self.lacks)


def proof_of_cell(
    facts: CellFacts, seen: CellVerdict | None, seen_at: str, artifacts: Sequence[Artifact]
) -> Proof:
    """`seen` is what the last `verify` said of the cell, at `seen_at`; `artifacts` the plan's."""
    at, unpickled, findings = _looked(facts, seen, seen_at)
    lacks = missing(facts, findings, artifacts=artifacts, is_tier_there=False)
    return Proof(at, unpickled, lacks)


def _looked(
    facts: CellFacts, seen: CellVerdict | None, seen_at: str
) -> tuple[str, tuple[str, ...], Sequence[Finding]]:
    """When these very bytes were loaded, and what was found in them."""
    if seen and seen.findings and seen.manifest_sha256 == facts.manifest_sha256:
        return seen_at, tuple(seen.unpickled), seen.findings
    if (by_box := receipt_of_its_box(facts)) is not None:
        return by_box.checked_at, (), by_box.findings
    return seen_at, (), ()


def receipt_of_its_box(facts: CellFacts) -> CellReceipt | None:
    """The one that lies beside the manifest; None where that is of another result."""
    pulled = facts.pulled
    if pulled is None or pulled.receipt is None:
        return None
    made, found = pulled.manifest, pulled.receipt
    is_bound = found.manifest_sha256 == pulled.sha256
    is_of_it = (found.run, found.cell, found.attempt) == (made.run, made.cell, made.attempt)
    return found if is_bound and is_of_it else None
