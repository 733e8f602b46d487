"""The whole curves of results that lie here."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_run import FILES, FinishedRun, make_run

from boxcar.laptop.view.page import cell_curves
from boxcar.laptop.view.page.cell_curves import Report, Told
from boxcar.shared.files.plan import Metric
from boxcar.shared.metrics import measure

LOSS = Metric("loss", "log", r"loss (\S+)")
CSV = b"step,acc\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(1, 501))


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    """Cells a and b were pulled, c was not."""
    made: FinishedRun = make_run(tmp_path)
    for cell in "ab":
        made.publish(cell, files=FILES | {"metrics.csv": CSV})
    made.copy_here()
    return made


def read(run: FinishedRun, known: dict[str, cell_curves.Whole]) -> dict[str, cell_curves.Whole]:
    return cell_curves.read_pulled_curves(run.site.results, (LOSS,), ["a", "b", "c"], known)


def test_a_pulled_cell_has_all_of_its_curve_and_another_what_was_seen(run: FinishedRun) -> None:
    seen = {
        "a": Told(3, (Report("x", 0.0, {"acc": 1.0}),)),
        "c": Told(5, (Report("x", 0.0, {"acc": 7.0}),)),
    }
    found = cell_curves.with_pulled(seen, read(run, {}))
    acc = [report.numbers["acc"] for report in found["a"].reports if "acc" in report.numbers]
    assert acc == list(range(1, 501)) and found["a"].place == 3
    assert found["c"] == seen["c"]
    drawn = cell_curves.draw_curves(found, ["a", "b"], ("acc",))["acc"]
    assert drawn.is_by_step and [curve.places[-1].x for curve in drawn.curves] == [500, 500]


def test_each_result_is_read_once_until_it_is_another(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read(run, {})
    monkeypatch.setattr(measure, "answers", lambda tasks: [{"series": {}} for _ in tasks])
    assert read(run, found) == found
    run.publish("b", files=FILES | {"metrics.csv": b"step,acc\n1,1\n2,2\n"})
    path = run.here("b", "manifest.json")
    path.write_bytes((run.site.tier.cell("b") / "manifest.json").read_bytes())
    again = read(run, found)
    assert again["a"] == found["a"] and again["b"].reports == ()


def test_a_result_that_is_damaged_has_none(run: FinishedRun) -> None:
    run.here("a", "manifest.json").write_text("{")
    assert set(read(run, {})) == {"b"}
