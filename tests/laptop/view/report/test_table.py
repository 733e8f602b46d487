"""The table of a report: groups, differences, and what may not enter a number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from report_cells import ablation, cell, made

from boxcar.laptop.view.report import as_text, table
from boxcar.laptop.view.report.groups import ReportCell, Spread, group_cells
from boxcar.laptop.view.report.table import Row, fold_notes
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import Sentence


def rows(*cells: ReportCell, **asked: Any) -> dict[str, Row]:
    (found,) = made(list(cells) or ablation(), **asked).tables
    return {row.name: row for row in found.rows}


def test_cells_that_differ_in_nothing_but_their_seed_are_one_group() -> None:
    found = rows()
    assert list(found) == ["baseline", "no_skip", "small"]
    assert found["no_skip"].n == "3" and found["no_skip"].numbers == ("0.60±0.10",)


def test_a_name_makes_no_group() -> None:
    alike = [cell("a", None, 1.0, lr=str(lr)) for lr in (1, 2)]
    assert len(group_cells(alike)) == 2


def test_the_job_may_name_another_key_of_the_seed() -> None:
    cells = [cell("a", None, 1.0, fold=str(fold)) for fold in (1, 2)]
    assert len(group_cells(cells)) == 2 and len(group_cells(cells, "fold")) == 1


def test_a_difference_has_its_interval_where_both_sides_have_three_seeds() -> None:
    # Both variances 0.01: standard error 0.0816, 4 degrees of freedom, 2.776.
    assert rows()["no_skip"].deltas == ("-0.20±0.23",)
    assert "±" not in rows()["small"].deltas[0]


def losses(*values: float) -> list[ReportCell]:
    names = ("base", "one", "two", "three")
    return [cell(name, None, v, lr=name) for name, v in zip(names, values, strict=False)]


def test_better_and_worse_are_by_what_the_job_calls_best_and_not_by_the_sign() -> None:
    loss = rows(*losses(0.5, 0.4, 0.6, 0.5), best={"dice": "min"})
    assert [row.deltas for row in loss.values()] == [
        ("-",),
        ("-0.10 better",),
        ("+0.10 worse",),
        ("+0.0",),
    ]
    [found] = made(losses(0.5, 0.4, 0.6), best={"dice": "max"}).tables
    assert [row.deltas[0] for row in found.rows] == ["-", "-0.10 worse", "+0.10 better"]
    assert [row.deltas[0] for row in rows(*losses(0.5, 0.4)).values()] == ["-", "-0.10"]
    delta = loss["one"].deltas[0]
    assert isinstance(delta, Sentence) and delta.said("zh") == "-0.10 更好"


def test_a_difference_whose_interval_includes_nothing_is_neither_better_nor_worse() -> None:
    assert rows(best={"dice": "max"})["no_skip"].deltas == ("-0.20±0.23",)
    assert rows(best={"dice": "max"})["small"].deltas == ("(-0.40 worse)",)
    said = rows(best={"dice": "max"})["small"].deltas[0]
    assert isinstance(said, Sentence) and said.said("zh") == "(-0.40 更差)"


@pytest.mark.parametrize(("best", "who"), [("min", ["one"]), ("max", ["base", "two"]), ("", [])])
def test_the_best_are_marked_where_the_job_says_what_is_best(best: str, who: list[str]) -> None:
    found = rows(*losses(0.6, 0.4, 0.6), best={"dice": best})
    assert [name for name, row in found.items() if row.bests[0]] == who


def test_a_number_in_brackets_is_not_the_best_and_one_alone_is_not_marked() -> None:
    doubtful = cell("odd", None, 0.9, lr="9", doubt="12 of 100 epochs")
    found = rows(*losses(0.5, 0.4), doubtful, best={"dice": "max"})
    assert [name for name, row in found.items() if row.bests[0]] == ["base"]
    assert not rows(*losses(0.5), doubtful, best={"dice": "max"})["base"].bests[0]


@pytest.mark.parametrize(
    ("column", "best", "order"),
    [
        ("dice", "min", ["one", "base", "two", "none"]),
        ("dice", "max", ["two", "base", "one", "none"]),
        ("dice", "", ["one", "base", "two", "none"]),
        ("cell", "max", ["base", "none", "one", "two"]),
        ("n", "max", ["none", "base", "one", "two"]),
        ("", "max", ["none", "base", "one", "two"]),
    ],
)
def test_rows_are_sorted_by_a_column_the_best_first_and_what_has_no_number_last(
    column: str, best: str, order: list[str]
) -> None:
    none = cell("none", None, None, lack="failed", lr="-")
    found = made([none, *losses(0.5, 0.4, 0.6)], best={"dice": best}, sort=column).tables
    assert [row.name for row in found[0].rows] == order


def test_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"--sort: expected dice, cell, n, .* found 'acc'"):
        made(ablation(), sort="acc")


def test_where_no_number_is_known_the_report_says_what_to_write() -> None:
    bare = [replace(one, numbers={}) for one in losses(0.5, 0.4)]
    assert "metrics: {loss: {log: " in made(bare).tables[0].notes[-1]
    failed = [replace(one, lack="failed") for one in bare]
    assert "metrics:" not in "".join(made(failed).tables[0].notes)


def test_what_changed_is_named_and_two_keys_are_no_clean_ablation() -> None:
    found = rows()
    assert found["no_skip"].changed == ("skip: true→false",) and found["no_skip"].is_clean
    assert found["small"].changed == ("skip: true→false", "width: -→8")
    assert not found["small"].is_clean
    (seen,) = made(ablation()).tables
    assert seen.notes[-1].startswith("(!) 1 group differs from the baseline in more than one key")


def test_an_incomplete_group_stands_in_brackets_and_says_why() -> None:
    small = rows()["small"]
    assert small.n == "2" and small.numbers == ("(0.4)",) and small.deltas[0].startswith("(")
    assert small.notes[0] == (
        "small is incomplete: seed 2 failed (M2). Its numbers are in brackets"
    )


def test_a_group_without_a_proven_cell_has_no_number_in_brackets_and_one_line_says_why() -> None:
    seen = rows(
        cell("base", 1, 0.5), *(cell("x", seed, None, lack="failed", width="8") for seed in (1, 2))
    )
    assert seen["x"].numbers == ("-",)
    [note] = seen["x"].notes
    assert note == "x has no number: seed 1 failed; seed 2 failed"
    assert (
        isinstance(note, Sentence) and note.said("zh") == "x 没有数值：种子 1 failed；种子 2 failed"
    )


def test_repetitions_of_one_seed_are_told() -> None:
    (row,) = rows(cell("a", 1, 0.5), cell("a", 1, 0.6)).values()
    assert "2 cells with seed 1: these are repetitions" in row.notes[0]


def test_a_number_that_is_not_finite_is_said_and_never_averaged() -> None:
    seeds = [cell("a", 1, 0.5), cell("a", 2, None, note="its last is nan"), cell("a", 3, 0.7)]
    (row,) = rows(*seeds).values()
    assert row.numbers == ("(0.60±0.14)",)
    assert "seed 2 has no dice: its last is nan" in row.notes[0]


def test_an_incomplete_baseline_makes_no_difference_sure() -> None:
    base = [cell("baseline", 1, 0.9), cell("baseline", 2, None, lack="is not verified")]
    found = rows(*base, cell("other", 1, 0.8, lr="1"), cell("other", 2, 0.8, lr="1"))
    assert found["other"].is_complete and found["other"].numbers == ("0.8",)
    assert found["other"].deltas == ("(-0.10)",)


def test_a_result_in_doubt_puts_its_group_in_brackets_and_is_said() -> None:
    base = cell("baseline", None, 0.9)
    ended = cell("ended", None, 0.8, lr="1", doubt="SIGSEGV after its last write")
    found = rows(base, ended, cell("other", None, 0.7, lr="2"))
    assert (found["ended"].numbers, found["ended"].deltas) == (("(0.8)",), ("(-0.10)",))
    assert found["ended"].notes == (
        "ended is not certain: SIGSEGV after its last write. Its numbers are in brackets",
    )
    assert found["ended"].is_complete and found["ended"].n == "1"
    assert found["other"].numbers == ("0.7",)
    doubtful = rows(replace(base, doubt="12 of 100 epochs"), ended)
    assert doubtful["ended"].deltas == ("(-0.10)",)


def test_the_baseline_is_named_else_so_called_else_the_first() -> None:
    assert rows()["baseline"].is_baseline
    assert rows(baseline="no_skip")["no_skip"].is_baseline
    assert rows(baseline="small_seed1")["small"].is_baseline
    first = rows(cell("x", None, 1.0, lr="1"), cell("y", None, 2.0, lr="2"))
    assert first["x"].is_baseline


def test_each_task_has_a_table_with_its_own_baseline() -> None:
    found = made([*ablation(), cell("det_baseline", None, 3.0, task="det")]).tables
    assert [(each.task, each.baseline) for each in found] == [
        ("seg", "baseline"),
        ("det", "det_baseline"),
    ]


@pytest.mark.parametrize(
    ("spread", "said"),
    [
        (Spread(3, 0.89412, 0.0041), "0.8941±0.0041"),
        (Spread(3, 123.456, 12.3), "123±12"),
        (Spread(1, 0.123456, None), "0.1235"),
        (Spread(3, 2.0, 0.0), "2"),
    ],
)
def test_a_mean_is_shown_as_far_as_its_spread_reaches(spread: Spread, said: str) -> None:
    assert table.mean_and_std(spread) == said


def test_hours_are_those_of_all_ranks_and_attempts() -> None:
    assert rows()["baseline"].hours == "6.00"  # three cells, an hour each, two ranks


def test_cost_is_that_of_the_boxes_whose_price_is_typed_and_currencies_are_not_added_up() -> None:
    cells = [
        cell("a", 1, 1.0, price="2 CNY/h"),
        cell("a", 2, 1.0, price="1 USD/h"),
        cell("a", 3, 1.0),
    ]
    assert rows(*cells)["a"].cost == "2.00 CNY + 1.00 USD"  # an hour each
    beside = [replace(one, share=0.25) for one in cells]
    assert rows(*beside)["a"].cost == "0.50 CNY + 0.25 USD", "of four cells on a box"
    assert as_text.columns(made(cells).tables[0])[-2] == "cost"
    assert "cost" not in as_text.columns(made(ablation()).tables[0])


def test_a_number_that_few_cells_have_is_not_chosen_unasked_and_makes_no_group_incomplete() -> None:
    odd = replace(ablation()[0], numbers={"dice": 0.9, "stray": 1.0})
    found = rows(odd, *ablation()[1:6])
    assert all(row.is_complete for row in found.values())
    (asked,) = made([odd, *ablation()[1:6]], metrics=("stray",)).tables
    assert asked.metrics == ("stray",) and not any(row.is_complete for row in asked.rows)


def test_each_task_chooses_its_own_numbers() -> None:
    few = [replace(cell("x", 1, 1.0, task="other", lr="9"), numbers={"psnr": 20.0})]
    named = {each.task: each.metrics for each in made([*ablation()[:6], *few]).tables}
    assert named == {"seg": ("dice",), "other": ("psnr",)}


def test_a_metric_that_is_missing_in_one_seed_puts_its_group_in_brackets() -> None:
    lacking = replace(ablation()[4], numbers={})
    found = rows(*ablation()[:4], lacking, ablation()[5])
    assert found["no_skip"].numbers == ("(0.60±0.14)",)
    assert found["no_skip"].notes[0].startswith("no_skip is incomplete: seed 1 has no dice")
    assert found["baseline"].is_complete


def test_brackets_are_promised_only_where_a_number_stands_in_them() -> None:
    """Of cells that are proven and have no such number."""
    whole = [cell("base", seed, 0.5) for seed in (0, 1)]
    without = cell("none", 0, None, note="no line of the log has it", width="8")
    found = rows(*whole, without)
    note = found["none_seed0"].notes[0]
    assert "brackets" not in note and "has no number" in note and "no line of the log" in note
    marked = cell("none", 0, None, note="x", width="8", doubt="12 of 100 epochs")
    notes = rows(*whole, marked)["none_seed0"].notes
    assert "not certain" in notes[1] and not any("brackets" in one for one in notes)


def test_notes_that_say_the_same_of_many_groups_are_one_with_their_number() -> None:
    failed = [cell(f"x{n}", 1, None, lack="failed", width=str(n)) for n in range(9)]
    missing = cell("y", 1, None, lack="is missing", width="99")
    (seen,) = made([cell("base", 1, 0.5), missing, *failed]).tables
    assert len(seen.notes) == 10
    other, many = fold_notes(seen.notes, 3)
    assert other == "y_seed1 has no number: seed 1 is missing"
    assert many == (
        "9 groups (x0_seed1, x1_seed1, x2_seed1 and 6 more) have no number: seed 1 failed"
    )
    assert many.said("zh").startswith("9 个组（x0_seed1, x1_seed1, x2_seed1 及另外 6 个）没有")
    assert fold_notes(seen.notes[-3:], 3) == seen.notes[-3:]


A100, T4 = "NVIDIA A100", "Tesla T4"


def on_gpus(*each: list[str] | None) -> dict[str, Row]:
    """A group for each, the first is the baseline."""
    names = ("base", "one", "two", "three")
    cells = [
        cell(n, None, 0.5, lr=n, **({} if gpus is None else {"gpus": gpus}))
        for n, gpus in zip(names, each, strict=False)
    ]
    return rows(*cells)


def test_a_comparison_across_gpus_is_marked_in_each_row_and_said_with_both() -> None:
    found = on_gpus([A100], [A100], [T4], [A100, A100])
    assert [row.has_other_gpus for row in found.values()] == [False, False, True, True]
    assert as_text.changed(found["two"]) == "lr: base→two (GPU)"
    [note] = found["two"].notes
    assert "two was trained on 1 x Tesla T4, the baseline on 1 x NVIDIA A100" in note
    assert "2 x NVIDIA A100" in found["three"].notes[0]


def test_where_the_gpus_of_one_side_are_not_known_nothing_is_marked() -> None:
    assert not any(row.has_other_gpus for row in on_gpus([A100], None, []).values())
    assert not any(row.has_other_gpus for row in on_gpus(None, [A100], [T4]).values())


def test_seeds_on_different_gpus_are_marked_as_one_group() -> None:
    pair = [cell("a", 1, 0.5, gpus=[A100]), cell("a", 2, 0.6, gpus=[T4])]
    (row,) = rows(*pair).values()
    assert row.has_other_gpus and as_text.changed(row) == "- (GPU)"
    assert "the cells of a were trained on different GPUs" in row.notes[0]
