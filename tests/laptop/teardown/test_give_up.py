from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.results.judge import CellFacts
from boxcar.laptop.teardown.gate import GateFacts, give_up, reasons_to_give_up
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import CellVerdict, RunReceipt

LACKS = ("is not published",)


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    run = make_run(tmp_path)
    run.project.results.root.mkdir(parents=True)
    return run


def _facts(run: FinishedRun, **tier: str) -> GateFacts:
    """Neither a nor b was published when the receipt was made; `tier` is what there is by now."""
    made = RunReceipt("tiny", "then", tuple(CellVerdict(c, "q1", None, LACKS) for c in "ab"))
    run.project.results.receipt.write_bytes(codec.to_document(made))
    return GateFacts(
        run="tiny",
        cells=tuple(CellFacts(c, "q1", tier_sha256=tier.get(c)) for c in "abc"),
        artifacts=(),
        doubts=(),
        alive=(),
        is_tier_there=True,
        receipt=made,
        approval=None,
    )


def test_it_is_written_with_its_reason_and_nothing_else_changes(run: FinishedRun) -> None:
    made = give_up(run.project.results, _facts(run), dict.fromkeys(["b", "b"], "it diverged"))
    assert made == receipt.read_run(run.project.results.receipt)
    assert made.made_at == "then"
    assert made.cells == (
        CellVerdict("a", "q1", None, LACKS),
        CellVerdict("b", "q1", None, LACKS, "it diverged"),
    )


def test_what_is_given_up_is_the_cell_as_it_is_now(run: FinishedRun) -> None:
    made = give_up(
        run.project.results, _facts(run, a="1" * 64), dict.fromkeys(["a"], "too large to pull")
    )
    assert made.cells[0].missing == ("is published but not pulled",)


def test_what_is_no_cell_of_the_run_is_not_given_up_and_nothing_is_written(
    run: FinishedRun,
) -> None:
    facts = _facts(run)
    with pytest.raises(InputError) as raised:
        give_up(run.project.results, facts, dict.fromkeys(["b", "c", "dd"], "it diverged"))
    assert len(raised.value.problems) == 1
    assert receipt.read_run(run.project.results.receipt) == facts.receipt


def test_a_cell_that_the_receipt_does_not_know_is_written_into_it(run: FinishedRun) -> None:
    made = give_up(run.project.results, _facts(run), dict.fromkeys(["c"], "it diverged"))
    assert [(cell.cell, cell.because) for cell in made.cells] == [
        ("a", None), ("b", None), ("c", "it diverged"),
    ]  # fmt: skip


def test_without_a_receipt_one_is_made_that_settles_only_what_is_given_up(
    run: FinishedRun,
) -> None:
    facts = replace(_facts(run), receipt=None)
    run.project.results.receipt.unlink()
    made = give_up(run.project.results, facts, dict.fromkeys(["b"], "it cannot be verified"))
    assert made == receipt.read_run(run.project.results.receipt)
    assert [(cell.cell, cell.is_settled) for cell in made.cells] == [
        ("a", False), ("b", True), ("c", False),
    ]  # fmt: skip


def test_a_receipt_that_cannot_be_read_is_kept_aside(run: FinishedRun) -> None:
    facts = replace(_facts(run), receipt=None)
    run.project.results.receipt.write_bytes(b"{")
    give_up(run.project.results, facts, dict.fromkeys(["b"], "it cannot be verified"))
    (aside,) = (run.project.results.root / "replaced").iterdir()
    assert aside.read_bytes() == b"{"


@pytest.mark.parametrize(
    ("cells", "gone", "because"),
    [
        (["a"], [], None),
        (["a"], [], ""),
        (["a"], [], " \n"),
        ([], ["box-a"], None),
        ([], [], "it diverged"),
    ],
)
def test_what_is_given_up_and_a_reason_come_together(
    cells: list[str], gone: list[str], because: str | None
) -> None:
    with pytest.raises(InputError, match="--because"):
        reasons_to_give_up(cells, gone, because)


def test_without_either_there_is_nothing_to_say() -> None:
    reasons_to_give_up([], [], None)
    reasons_to_give_up(["a"], [], "it diverged")
    reasons_to_give_up([], ["box-a"], "the host left the market")


def test_one_reason_is_that_of_all_and_several_are_each_ones_own() -> None:
    assert reasons_to_give_up(["a", "b"], ["box-a"], "it is over") == dict.fromkeys(
        ["a", "b", "box-a"], "it is over"
    )
    assert reasons_to_give_up(["a", "b"], [], ["it diverged", "no use"]) == {
        "a": "it diverged",
        "b": "no use",
    }
    for cells, gone, because in (
        (["a", "b", "c"], [], ["x", "y"]),
        (["a"], ["box-a"], ["x", "y"]),  # who typed which first is not known
        (["a", "b"], [], ["x", " "]),
    ):
        with pytest.raises(InputError, match="--because"):
            reasons_to_give_up(cells, gone, because)
