"""What a page that is served has seen of each cell's numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from big_run import view
from run_on_disk import from_now

from boxcar.laptop.run.view import RunView
from boxcar.laptop.view.page.cell_curves import (
    MOST_CELLS,
    MOST_CHARTS,
    Report,
    Told,
    draw_curves,
    reports_after_look,
)
from boxcar.shared.files.heartbeat import Seen
from boxcar.shared.files.journal_chain import Event


def told(*numbers: dict[str, Any], place: int = 0) -> Told:
    """One report a minute."""
    rows = enumerate(numbers)
    return Told(place, tuple(Report(f"{at}", float(at), each) for at, each in rows))


def beat(given: RunView, at_s: float, cell: str | None, **numbers: Any) -> RunView:
    [queue] = given.queues
    assert queue.heartbeat
    now = replace(queue.heartbeat, at=from_now(at_s), cell=cell, progress=numbers)
    return replace(given, queues=(replace(queue, heartbeat=now),))


def with_events(given: RunView, *rows: tuple[float, str, dict[str, Any]]) -> RunView:
    [queue] = given.queues
    events = tuple(
        Event(number, f"{number}", from_now(at_s), type_, data, {})
        for number, (at_s, type_, data) in enumerate(rows, start=1)
    )
    return replace(given, queues=(replace(queue, events=events),))


def values(reports: dict[str, Told], cell: str, key: str) -> list[Any]:
    return [each.numbers[key] for each in reports[cell].reports if each.numbers]


def test_each_look_adds_what_is_new_and_nothing_twice() -> None:
    given = view(3, 1)
    cell = given.cells[0].name
    reports = reports_after_look({}, beat(given, 0, cell, step=40, train_loss=0.5))
    again = reports_after_look(reports, beat(given, 5, cell, step=40, train_loss=0.5))
    assert values(again, cell, "step") == [40]
    found = reports_after_look(again, beat(given, 10, cell, step=41, train_loss=0.3))
    assert values(found, cell, "step") == [40, 41]


def test_what_a_log_seems_to_say_has_a_curve_of_its_own_by_its_step() -> None:
    given = view(3, 1)
    cell = given.cells[0].name
    reports: dict[str, Told] = {}
    for at_s, step, loss in ((0, 10, 0.5), (10, 20, 0.25)):
        seen = Seen(step=step, numbers={"loss": loss})
        looked = beat(given, at_s, cell)
        [queue] = looked.queues
        assert queue.heartbeat
        with_seen = replace(queue, heartbeat=replace(queue.heartbeat, seen=seen))
        reports = reports_after_look(reports, replace(looked, queues=(with_seen,)))
    drawn = draw_curves(reports, [cell], ())
    assert [*drawn] == ["~loss"] and drawn["~loss"].is_by_step
    assert [(at.x, at.mean) for at in drawn["~loss"].curves[0].places] == [
        (10.0, 0.5),
        (20.0, 0.25),
    ]


def test_no_older_point_comes_after_the_end_of_a_cell() -> None:
    """Its journal ends before it did, and its heartbeat is another cell's by then."""
    given = view(3, 1)
    cell, journal = given.cells[0].name, {"val_acc": 0.6875}
    given = with_events(
        given,
        (-100, "cell.started", {"cell": given.cells[0].name, "attempt": 1}),
        (-40, "cell.progress", {"cell": given.cells[0].name, "progress": journal}),
    )
    reports = reports_after_look({}, beat(given, -20, cell, val_acc=0.8125))
    reports = reports_after_look(reports, beat(given, -5, cell, val_acc=0.875))
    ended = replace(given.cells[0], progress=journal)
    after = replace(given, cells=(ended, *given.cells[1:]))
    for look in (beat(after, 0, None), beat(after, 5, given.cells[2].name, val_acc=0.125)):
        reports = reports_after_look(reports, look)
        assert values(reports, cell, "val_acc") == [0.6875, 0.8125, 0.875]
    # Its dead agent's last heartbeat, found once more.
    reports = reports_after_look(reports, beat(after, -20, cell, val_acc=0.8125))
    assert values(reports, cell, "val_acc") == [0.6875, 0.8125, 0.875]


def test_days_of_looks_stay_small_and_keep_the_first_and_the_newest() -> None:
    given, reports = view(3, 1), {}
    for step in range(3000):
        look = beat(given, step, given.cells[0].name, step=step, train_loss=1.0)
        reports = reports_after_look(reports, look)
    steps = values(reports, given.cells[0].name, "step")
    assert len(steps) < 700 and (steps[0], steps[-1]) == (0, 2999) and steps == sorted(steps)


def test_without_steps_the_axis_is_the_minutes_since_the_first_start_whenever_one_looks() -> None:
    given = view(3, 1)
    cell = given.cells[0].name
    rows = [(-600.0, "cell.started", {"cell": cell, "attempt": 1})]
    rows += [
        (-600 + 60.0 * n, "cell.progress", {"cell": cell, "progress": {"val_loss": 1 / n}})
        for n in range(1, 9)
    ]
    looked = beat(with_events(given, *rows), 0, cell, val_loss=0.0)
    [chart] = draw_curves(reports_after_look({}, looked), [cell], []).values()
    [curve] = chart.curves
    assert not chart.is_by_step and len(curve.parts) == 1
    xs = [round(at.x) for at in curve.places]
    assert xs == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert chart.x_name("en") == "minutes since first start"
    assert chart.x_name("zh") == "自首次启动起的分钟数"


def test_an_axis_of_steps_has_steps_alone() -> None:
    early = told({"loss": 9.0}, *({"step": 100 * n, "loss": 1.0} for n in range(1, 4)))
    [chart] = draw_curves({"a": early}, ["a"], []).values()
    assert chart.x_name("en") == "step"
    assert [at.x for at in chart.curves[0].places] == [100, 200, 300]
    none = told({"loss": 9.0}, {"loss": 8.0})
    [chart] = draw_curves({"a": early, "b": none}, ["a", "b"], []).values()
    assert not chart.is_by_step, "steps and minutes do not share an axis"


def test_a_cell_keeps_its_look_whichever_cells_are_drawn_before_it() -> None:
    report = told({"step": 1, "loss": 2}, {"step": 2, "loss": 1})
    reports = {f"c{n}": replace(report, place=n) for n in range(30)}
    few, many = ["c9", "c3"], [f"c{n}" for n in range(29, -1, -1)]
    looks: list[dict[str, str]] = []
    for cells in (few, many):
        [chart] = draw_curves(reports, cells, []).values()
        names = [curve.group for curve in chart.curves]
        looks.append(dict(zip(names, chart.looks, strict=True)))
    for cell in few:
        assert looks[1].get(cell, looks[0][cell]) == looks[0][cell]
    assert looks[0] == {"c9": "c1 d1", "c3": "c3"}
    assert len(set(looks[1].values())) == len(looks[1]) == MOST_CELLS == 24, "each its own"


def test_cells_that_run_beside_each_other_have_places_of_their_own_and_keep_them() -> None:
    given = view(9, 3)
    reports: dict[str, Told] = {}
    queues = [
        replace(queue, heartbeat=replace(queue.heartbeat, cell=cell.name, progress={"loss": 1}))
        for queue, cell in zip(given.queues, given.cells, strict=False)
        if queue.heartbeat
    ]
    reports = reports_after_look(reports, replace(given, queues=tuple(queues)))
    places = [reports[cell.name].place for cell in given.cells[:3]]
    assert len(set(places)) == 3
    appended = replace(given, queues=tuple(queues), cells=(*given.cells[3:], *given.cells[:3]))
    again = reports_after_look({}, appended)
    assert [again[cell.name].place for cell in given.cells[:3]] == places


def test_the_loss_comes_first_then_what_the_job_names_and_there_is_an_end_of_both() -> None:
    report = {f"n{number}": number for number in range(30)} | {"psnr": 1, "train_loss": 2}
    both = told({"step": 1, **report}, {"step": 2, **report})
    cells = [f"cell{number}" for number in range(100)]
    found = draw_curves(dict.fromkeys(cells, both), cells, ["psnr"])
    assert list(found)[:3] == ["train_loss", "psnr", "n0"] and len(found) == MOST_CHARTS
    assert [curve.group for curve in found["psnr"].curves] == cells[:MOST_CELLS]


@pytest.mark.parametrize("named", [[], ["c"]])
def test_what_is_no_number_and_one_report_alone_make_no_curve(named: list[str]) -> None:
    odd = told({"step": True, "a": "x", "b": True, "c": 1}, {"a": None, "b": False, "d": 1})
    assert draw_curves({"x": odd}, ["x", "gone"], named) == {}
