from __future__ import annotations

from pathlib import Path

from boxcar.laptop.project.queues.cell_cost import (
    EPOCHS,
    SECONDS,
    Cost,
    Sample,
    costs_of_cells,
    samples,
)
from boxcar.shared.files import journal
from boxcar.shared.files.plan import Cell

JOURNAL = Path(__file__).parents[3] / "data" / "v1" / "journal.jsonl"


def cell(name: str, task: str = "recon", epochs: int = 10) -> Cell:
    return Cell(name, f"{name}.yaml", task, epochs, "q", 0, 1)


def test_a_journal_tells_what_each_cell_took_over_all_its_attempts() -> None:
    found = {sample.cell: sample for sample in samples(journal.read_journal(JOURNAL).events)}
    assert sorted(found) == ["recon_baseline", "recon_no_aug", "recon_small_latent"]
    assert found["recon_baseline"].seconds == 10.881 + 19.208
    assert found["recon_no_aug"].seconds == 15.226 + 15.559
    assert (found["recon_no_aug"].task, found["recon_no_aug"].epochs) == ("reconstruction", 20)
    assert found["recon_no_aug"].box == "box-a"


def test_a_cell_that_has_not_ended_well_measures_nothing() -> None:
    events = journal.read_journal(JOURNAL).events[:6]  # recon_baseline was retried and runs again
    assert samples(events) == []


def test_a_cell_costs_what_it_took_itself_else_its_task_else_the_others() -> None:
    measured = [Sample("a", "recon", 10, 100.0, "x"), Sample("b", "recon", 10, 300.0, "x")]
    measured += [Sample("c", "det", 5, 5000.0, "x")]
    cells = [cell("a", epochs=20), cell("new"), cell("other", "seg", 1)]
    found, unit = costs_of_cells(cells, measured, {}, {})
    assert unit == SECONDS
    assert found["a"] == Cost(200.0, "measured")
    assert found["new"] == Cost(200.0, "its task")
    assert found["other"] == Cost(30.0, "other tasks")


def test_what_is_given_comes_first_and_a_cell_before_its_task() -> None:
    measured = [Sample("a", "recon", 10, 100.0, "x")]
    cells = [cell("a"), cell("b"), cell("c")]
    found, _ = costs_of_cells(cells, measured, {}, {"recon": 60, "b": 7})
    assert [found[name].amount for name in "abc"] == [60, 7, 60]


def test_seconds_of_a_fast_box_count_for_more() -> None:
    measured = [Sample("a", "recon", 10, 100.0, "fast"), Sample("b", "recon", 10, 100.0, "slow")]
    found, _ = costs_of_cells([cell("a"), cell("b")], measured, {"fast": 2.0}, {})
    assert (found["a"].amount, found["b"].amount) == (200.0, 100.0)


def test_where_nothing_is_known_epochs_are_the_cost() -> None:
    found, unit = costs_of_cells([cell("a", epochs=3), cell("b", epochs=9)], [], {}, {})
    assert unit == EPOCHS
    assert [found[name].amount for name in "ab"] == [3.0, 9.0]
