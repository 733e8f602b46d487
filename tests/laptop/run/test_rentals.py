"""When a box bills, and when its disk alone does, as records and the teardown say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_project import make_project

from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.rentals import rentals_of_boxes
from boxcar.laptop.run.run_cost import Rental
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import Teardown

NOON, ONE, TWO = (f"2026-11-01T{hour}:00:00.000Z" for hour in (12, 13, 14))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tiny = make_project(tmp_path / "project", {"queue_1": ["configs/a.json one"]})
    found = open_project(tiny.root / "job.yaml", "local")
    meter = found.profile.meter.model_copy(update={"off_price": "0.05 USD/h", "down": "destroy"})
    return replace(found, profile=found.profile.model_copy(update={"meter": meter}))


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({}, Rental()),
        ({"seen_gone": ONE}, Rental(None, ONE, "", ONE)),
        ({"stopped": NOON}, Rental(None, NOON, "0.05 USD/h")),
        ({"stopped": NOON, "seen_gone": TWO}, Rental(None, NOON, "0.05 USD/h", TWO)),
        ({"stopped": NOON, "seen_off": TWO}, Rental(None, NOON, "0.05 USD/h", TWO)),
        ({"seen_off": ONE}, Rental(None, ONE, "")),
    ],
)
def test_the_disk_of_a_stopped_box_bills_until_it_is_destroyed(
    project: Project, times: dict[str, str], expected: Rental
) -> None:
    [box] = {known.name for known in project.plan.boxes}
    seen = {name: {box: at} for name, at in times.items()}
    teardown = Teardown("tiny", "a" * 64, "destroy", NOON, "typed", **seen)
    atomic.make_folder(project.results.teardown.parent)
    atomic.write_whole(project.results.teardown, codec.to_document(teardown))
    assert rentals_of_boxes(project) == {box: expected}
