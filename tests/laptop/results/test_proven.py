from __future__ import annotations

from dataclasses import replace

import pytest

from boxcar.laptop.results.judge import CellFacts, Pulled
from boxcar.laptop.results.results_folder import proof_of_cell
from boxcar.shared.files.manifest import Difference, FileRecord, Manifest
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import BYTES, CellReceipt, CellVerdict, Finding
from boxcar.shared.process.load_child import UNCHECKED

AT, BOX_AT, SHA = "2026-11-22T11:00:00.000Z", "2026-11-21T09:00:00.000Z", "0a" * 32
MADE = Manifest(
    *("tiny", "a", "q1", "box-a", "r1", 1, "t", "a.yaml", 3, AT, AT),
    files=(FileRecord("w.pth", 5, SHA),),
)
GOOD = Finding("w.pth", "torch")
BAD = replace(GOOD, problems=("is cut off",))
RECEIPT = CellReceipt("tiny", "a", 1, SHA, BOX_AT, (GOOD,))
PULLED = Pulled(MADE, SHA, receipt=RECEIPT)
FACTS = CellFacts("a", "q1", pulled=PULLED)
ARTIFACTS = (Artifact("w.pth"),)
DIFFERENT = (Difference("w.pth", "is missing"),)


def by_box(*findings: Finding, **other: object) -> CellFacts:
    receipt = replace(RECEIPT, findings=findings, **other)  # type: ignore[arg-type]
    return replace(FACTS, pulled=replace(PULLED, receipt=receipt))


def verdict(*findings: Finding, **other: object) -> CellVerdict:
    return replace(CellVerdict("a", "q1", SHA, findings=findings), **other)  # type: ignore[arg-type]


def lacks(facts: CellFacts, seen: CellVerdict | None = None) -> list[str]:
    return [row.what for row in proof_of_cell(facts, seen, AT, ARTIFACTS).lacks]


def test_what_its_box_has_loaded_and_is_whole_here_is_proven() -> None:
    found = proof_of_cell(FACTS, None, AT, ARTIFACTS)
    assert (found.lacks, found.at) == ((), BOX_AT)


def test_what_verify_has_loaded_here_is_proven_without_a_receipt_of_its_box() -> None:
    facts = replace(FACTS, pulled=replace(PULLED, receipt=None))
    found = proof_of_cell(facts, verdict(GOOD, unpickled={"w.pth": AT}), AT, ARTIFACTS)
    assert (found.lacks, found.at, found.unpickled) == ((), AT, ("w.pth",))


def test_that_the_tier_was_lost_when_verify_looked_takes_nothing_from_a_proof() -> None:
    assert lacks(FACTS, verdict(GOOD, missing=("has no manifest on the durable tier",))) == []


@pytest.mark.parametrize(
    ("facts", "seen"),
    [
        (FACTS, verdict(BAD)),  # this machine's word counts above the box's
        (by_box(BAD), None),
        (replace(FACTS, pulled=replace(PULLED, differences=DIFFERENT)), None),
        (replace(FACTS, problem="cannot be read"), verdict(GOOD)),
        (replace(FACTS, pulled=replace(PULLED, manifest=replace(MADE, files=()))), verdict(GOOD)),
    ],
)  # fmt: skip
def test_what_is_damaged_or_bad_is_not_proven(facts: CellFacts, seen: CellVerdict | None) -> None:
    assert lacks(facts, seen)


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, pulled=replace(PULLED, receipt=None)),
        by_box(GOOD, manifest_sha256="0b" * 32),
        by_box(GOOD, cell="b"),
        by_box(GOOD, attempt=2),
        by_box(replace(GOOD, load=BYTES)),
        by_box(replace(BAD, kind=UNCHECKED)),
    ],
)
def test_what_nobody_has_looked_into_is_not_proven_and_nothing_speaks_against_it(
    facts: CellFacts,
) -> None:
    found = proof_of_cell(facts, verdict(BAD, manifest_sha256="0b" * 32), AT, ARTIFACTS)
    assert found.lacks and found.is_only_unseen


def test_what_is_damaged_was_not_only_unseen() -> None:
    pulled = replace(PULLED, differences=DIFFERENT)
    assert not proof_of_cell(replace(FACTS, pulled=pulled), None, AT, ARTIFACTS).is_only_unseen
    assert not proof_of_cell(by_box(BAD), None, AT, ARTIFACTS).is_only_unseen
