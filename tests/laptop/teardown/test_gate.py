from __future__ import annotations

from dataclasses import replace

import pytest

from boxcar.laptop.results.judge import CellFacts, Pulled
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.teardown.gate import (
    CONTINUED,
    GIVEN,
    TYPED,
    Approval,
    GateFacts,
    Open,
    Refused,
    decide,
    obstacles,
)
from boxcar.laptop.teardown.still_running import Beside
from boxcar.shared.files.manifest import Difference, FileRecord, Manifest
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import CellVerdict, Finding, RunReceipt

SHA = "1" * 64
MANIFEST = Manifest(
    run="tiny", cell="a", queue="q1", box="box-a", release="r", attempt=1, task="t", cfg="a.yaml",
    epochs=1, started_at="", ended_at="", files=(FileRecord("best.pth", 3, "2" * 64),),
)  # fmt: skip
CELL = CellFacts("a", "q1", tier_sha256=SHA, pulled=Pulled(MANIFEST, SHA))
VERDICT = CellVerdict("a", "q1", SHA, findings=(Finding("best.pth", "torch"),))
LOST = CellFacts("z", "q1")
ABANDONED = CellVerdict("z", "q1", missing=("is not published",), because="it diverged")
RECEIPT = RunReceipt("tiny", "now", (VERDICT, ABANDONED))
ALL_TRUE = GateFacts(
    run="tiny",
    cells=(CELL, LOST),
    artifacts=(Artifact("best.pth"),),
    doubts=(),
    alive=(),
    is_tier_there=True,
    receipt=RECEIPT,
    approval=Approval(TYPED, "tiny"),
)
DOUBT = Missing(None, "doubt", "look")

# What the gate needs, each with the facts in which it alone is not so.
CONDITIONS = {
    "the roster is certain": lambda facts: replace(facts, doubts=(DOUBT,)),
    "no agent lives": lambda facts: replace(facts, alive=(DOUBT,)),
    "the tier is there": lambda facts: replace(facts, is_tier_there=False),
    "the cell was pulled": lambda facts: _cell(facts, pulled=None),
    "its files hash right": lambda facts: _pulled(facts, differences=(Difference("x", "differs"),)),
    "its manifest is that of the receipt": lambda facts: _pulled(facts, sha256="3" * 64),
    "its manifest is the tier's": lambda facts: _cell(facts, tier_sha256="4" * 64),
    "it can be judged": lambda facts: _cell(facts, problem="damaged"),
    "the receipt is of this run": lambda facts: _receipt(facts, run="other"),
    "the receipt names the cell": lambda facts: _receipt(
        facts, cells=tuple(verdict for verdict in facts.receipt.cells if verdict.cell != "a")
    ),
    "the receipt names no other": lambda facts: _receipt(
        facts, cells=(*facts.receipt.cells, CellVerdict("gone", "q1"))
    ),
    "the cell is verified there": lambda facts: _verdict(facts, "a", missing=("best.pth",)),
    "its artifacts were loaded": lambda facts: _verdict(facts, "a", findings=()),
    "the other is abandoned": lambda facts: _verdict(facts, "z", because=None),
    "somebody approved": lambda facts: replace(facts, approval=None),
}


def _cell(facts: GateFacts, **changes: object) -> GateFacts:
    return replace(facts, cells=(replace(facts.cells[0], **changes), *facts.cells[1:]))


def _pulled(facts: GateFacts, **changes: object) -> GateFacts:
    pulled = facts.cells[0].pulled
    return _cell(facts, pulled=replace(pulled, **changes)) if pulled else facts


def _receipt(facts: GateFacts, **changes: object) -> GateFacts:
    return replace(facts, receipt=replace(facts.receipt, **changes))


def _verdict(facts: GateFacts, cell: str, **changes: object) -> GateFacts:
    verdicts = (
        replace(verdict, **changes) if verdict.cell == cell else verdict
        for verdict in facts.receipt.cells
    )
    return _receipt(facts, cells=tuple(verdicts))


def _reasons(facts: GateFacts) -> list[tuple[str | None, str]]:
    decision = decide(facts)
    assert isinstance(decision, Refused)
    return [(row.cell, str(row.command)) for row in decision.reasons]


def test_of_all_combinations_exactly_the_one_where_everything_holds_opens() -> None:
    combinations = [(ALL_TRUE, False)]
    for spoil in CONDITIONS.values():
        combinations += [(spoil(facts), True) for facts, _ in combinations]
    assert len(combinations) == 2 ** len(CONDITIONS)
    for facts, is_spoiled in combinations:
        assert isinstance(decide(facts), Open) is not is_spoiled


def test_it_opens_for_the_digest_of_the_receipt() -> None:
    assert decide(ALL_TRUE) == Open(RECEIPT.digest)


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_refusal_says_what_mends_it(name: str) -> None:
    decision = decide(CONDITIONS[name](ALL_TRUE))
    assert isinstance(decision, Refused)
    assert decision.reasons and all(row.what and row.command for row in decision.reasons)


def test_without_a_receipt_it_is_shut_even_where_all_else_holds() -> None:
    assert (None, "invoke verify") in _reasons(replace(ALL_TRUE, receipt=None))


def test_an_empty_roster_is_no_full_roster() -> None:
    empty = replace(ALL_TRUE, cells=(), receipt=RunReceipt("tiny", "now", ()))
    assert _reasons(empty) == [(None, "invoke plan")]


def test_a_finding_with_a_problem_keeps_it_shut() -> None:
    bad = Finding("best.pth", "torch", ("w holds 1 NaN",))
    assert _reasons(_verdict(ALL_TRUE, "a", findings=(bad,))) == [("a", "invoke explain --cell a")]


def test_a_new_artifact_in_the_plan_keeps_it_shut() -> None:
    assert _reasons(
        replace(ALL_TRUE, artifacts=(Artifact("best.pth"), Artifact("metrics.json")))
    ) == [("a", "invoke explain --cell a")]


def test_a_tier_that_lost_the_manifest_keeps_it_shut() -> None:
    assert _reasons(_cell(ALL_TRUE, tier_sha256=None)) == [("a", "invoke explain --cell a")]


def test_a_copy_that_was_pulled_again_needs_another_look() -> None:
    again = _cell(_pulled(ALL_TRUE, sha256="3" * 64), tier_sha256="3" * 64)
    assert _reasons(again) == [("a", "invoke verify")]


def test_an_abandoned_cell_that_was_published_since_needs_another_look() -> None:
    published = replace(ALL_TRUE, cells=(CELL, replace(LOST, tier_sha256=SHA)))
    assert _reasons(published) == [("z", "invoke verify")]


def test_an_abandoned_cell_that_is_whole_now_needs_another_look() -> None:
    whole = replace(CELL, cell="z")
    good = _verdict(ALL_TRUE, "z", findings=VERDICT.findings)
    assert _reasons(replace(good, cells=(CELL, whole))) == [("z", "invoke verify")]


@pytest.mark.parametrize(
    ("how", "text", "opens"),
    [
        (TYPED, "tiny", True),
        (TYPED, "", False),
        (TYPED, "TINY", False),
        (TYPED, RECEIPT.digest, False),
        (GIVEN, RECEIPT.digest, True),
        (GIVEN, RECEIPT.digest[:12], True),
        (GIVEN, RECEIPT.digest[:11], False),
        (GIVEN, "", False),
        (GIVEN, RECEIPT.digest[1:20], False),
        (GIVEN, RECEIPT.digest + "0", False),
        (GIVEN, "tiny", False),
        (CONTINUED, RECEIPT.digest, True),
        (CONTINUED, RECEIPT.digest[:12], False),
        ("shrug", RECEIPT.digest, False),
    ],
)
def test_an_approval_is_of_this_run_and_receipt(how: str, text: str, opens: bool) -> None:
    decision = decide(replace(ALL_TRUE, approval=Approval(how, text)))
    assert isinstance(decision, Open) is opens


def test_a_wrong_approval_names_the_right_one() -> None:
    stale = replace(ALL_TRUE, approval=Approval(GIVEN, "0" * 12))
    assert _reasons(stale) == [(None, f"invoke down --approve {RECEIPT.digest[:12]}")]


def test_a_teardown_that_goes_on_needs_no_tier_but_the_same_results() -> None:
    cells = (replace(CELL, tier_sha256=None), LOST)
    goes_on = replace(
        ALL_TRUE, cells=cells, is_tier_there=False, approval=Approval(CONTINUED, RECEIPT.digest)
    )
    assert isinstance(decide(goes_on), Open)
    assert _reasons(_pulled(goes_on, differences=(Difference("best.pth", "differs"),))) == [
        ("a", "invoke pull")
    ]
    assert isinstance(decide(_cell(goes_on, pulled=None)), Refused)
    assert isinstance(decide(_pulled(goes_on, sha256="3" * 64)), Refused)


def test_the_obstacles_are_all_but_the_approval() -> None:
    assert obstacles(replace(ALL_TRUE, approval=None)) == ()
    assert len(obstacles(CONDITIONS["no agent lives"](ALL_TRUE))) == 1


@pytest.mark.parametrize(("named", "opens"), [((), False), (("last",), False), (("next",), True)])
@pytest.mark.parametrize(
    ("how", "text"), [(TYPED, ALL_TRUE.run), (GIVEN, RECEIPT.digest), (CONTINUED, RECEIPT.digest)]
)
def test_another_run_on_a_box_keeps_the_gate_shut_until_it_is_named_too(
    how: str, text: str, named: tuple[str, ...], opens: bool
) -> None:
    facts = replace(ALL_TRUE, beside=(Beside("next", "next is running on box-a"),))
    assert obstacles(facts) == (), "what a person may approve"
    decision = decide(replace(facts, approval=Approval(how, text, named)))
    assert isinstance(decision, Open) is opens
