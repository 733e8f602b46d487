"""What a page that is served has seen of each cell's numbers."""

from __future__ import annotations

from dataclasses import replace

from big_run import view

from boxcar.laptop.live_page.cell_curves import MOST_CELLS, MOST_CHARTS, drawn, seen


def test_each_look_adds_what_is_new_and_nothing_twice() -> None:
    given = view(3, 1)
    cell = given.cells[0]
    reports = seen({}, given)
    assert reports[cell.name] == (cell.progress,)
    assert seen(reports, given) == reports
    later = replace(cell, progress={"step": 41, "train_loss": 0.3})
    found = seen(reports, replace(given, cells=(later, *given.cells[1:])))
    assert found[cell.name] == (cell.progress, later.progress)


def test_days_of_looks_stay_small_and_keep_the_first_and_the_newest() -> None:
    given = view(3, 1)
    name, reports = given.cells[0].name, seen({}, replace(given, cells=()))
    for step in range(3000):
        cell = replace(given.cells[0], progress={"step": step, "train_loss": 1.0})
        reports = seen(reports, replace(given, cells=(cell,)))
    steps = [report["step"] for report in reports[name]]
    assert len(steps) < 700 and (steps[0], steps[-1]) == (0, 2999) and steps == sorted(steps)


def test_the_loss_comes_first_then_what_the_job_names_and_there_is_an_end_of_both() -> None:
    report = {f"n{number}": number for number in range(30)} | {"psnr": 1, "train_loss": 2}
    told = ({"step": 1, **report}, {"step": 2, **report})
    cells = [f"cell{number}" for number in range(100)]
    found = drawn(dict.fromkeys(cells, told), cells, ["psnr"])
    assert list(found)[:3] == ["train_loss", "psnr", "n0"] and len(found) == MOST_CHARTS
    assert [curve.group for curve in found["psnr"]] == cells[:MOST_CELLS]


def test_what_is_no_number_and_one_report_alone_make_no_curve() -> None:
    told = ({"step": True, "a": "x", "b": True, "c": 1}, {"a": None, "b": False, "d": 1})
    assert drawn({"x": told}, ["x", "gone"], []) == {}
