"""What a platform does to a box that was stopped, and from when on it is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from finished_run import make_run
from run_on_disk import from_now

from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.view import RunView
from boxcar.laptop.teardown.countdowns import countdowns
from boxcar.laptop.view.gpu_history import NOTHING_SEEN
from boxcar.laptop.view.needs import Quiet, needs_of_run
from boxcar.shared import timestamp
from boxcar.shared.files.receipt import Teardown

DAY = 86400.0
NOW = from_now(0)


def project_on(root: Path, name: str) -> Project:
    return replace(make_run(root, ("a",)).project, profile=load_profile(name, root))


def stopped(days: float) -> Teardown:
    """The box-a was; of box-b nobody saw it."""
    at = timestamp.after(NOW, -days * DAY)
    return Teardown("tiny", "ab" * 32, "关机", at, "typed", off={"box-a": at})


def test_a_clock_counts_from_the_moment_when_the_box_was_seen_to_stop(tmp_path: Path) -> None:
    autodl = project_on(tmp_path, "autodl")
    [one] = countdowns(autodl, stopped(9), NOW)
    assert (one.box, one.does) == ("box-a", "release")
    assert one.left_s / DAY == pytest.approx(6.0, abs=0.001) and one.is_near
    assert one.sentence.startswith("box-a: released with its disks in ")
    assert one.sentence.endswith("(source: none)")
    assert not countdowns(autodl, stopped(7), NOW)[0].is_near
    assert countdowns(autodl, None, NOW) == ()
    assert "time was up" in countdowns(autodl, stopped(16), NOW)[0].sentence


def test_the_nearest_comes_first_and_a_box_that_is_gone_has_none(tmp_path: Path) -> None:
    gpushare = project_on(tmp_path, "gpushare")
    first, second = countdowns(gpushare, stopped(0.6), NOW)
    assert "/hy-tmp is wiped in" in first.sentence and second.does == "release"
    gone = replace(stopped(0.6), seen_gone={"box-a": NOW})
    assert countdowns(gpushare, gone, NOW) == ()
    assert countdowns(project_on(tmp_path / "v", "vastai"), stopped(9), NOW) == (), "none invented"


@pytest.mark.parametrize(
    ("left", "look"), [(0.5, (False, True)), (0.2, (False, False)), (0.05, (True, False))]
)
def test_it_is_told_at_50_20_and_5_percent_also_after_the_end(
    left: float, look: tuple[bool, bool]
) -> None:
    quiet = Quiet(is_over=True, countdowns=(("text", left),))
    [need] = needs_of_run(RunView("r", NOW, (), ()), NOTHING_SEEN, quiet, "en")
    assert (need.is_broken, need.is_quiet) == look
