"""Two runs on a rented box: each is told of the other before it starts, and before the box ends."""

from __future__ import annotations

from pathlib import Path

from hosts import Hosts
from rented import rent


def test_a_run_is_told_of_another_on_its_box_when_it_begins_and_when_the_box_is_to_end(
    one_box: Hosts, tmp_path: Path
) -> None:
    first = rent(one_box, tmp_path / "first", {"q1": ["configs/a.json one"]}, has_tier=False)
    first.launch().ended(0)
    first.watch()
    for verb in ("pull", "verify"):
        first.boxcar(verb).ended(0)

    lines = {"q1": ["configs/b.json one"]}
    second = rent(one_box, tmp_path / "second", lines, has_tier=False, name="next")
    second.hold("b", at=1)
    second.launch().ended(0)  # nobody is at work there any more
    second.wait_for_step("box-a", "b", 1)

    refused = first.boxcar("down", typed="tiny").ended(1)
    assert "run next is running on box-a (q1), and would be ended with it" in refused.err
    assert first.credentials("box-a").exists()

    third = rent(one_box, tmp_path / "third", lines, has_tier=False, name="last")
    refused = third.launch().ended(2)
    assert "warn: box-a: other runs: next (q1)" in refused.err and "--beside" in refused.err
    assert not third.box("box-a").exists()
    assert "next (q1)" in third.boxcar("audit").ended(0).out

    second.let_go("b")
    second.watch()
    refused = first.boxcar("down", typed="tiny").ended(1)
    assert "run next has 1 cell on box-a not verified on this machine" in refused.err
    for verb in ("pull", "verify"):
        second.boxcar(verb).ended(0)
    first.boxcar("down", typed="tiny").ended(75)
    assert not first.credentials("box-a").exists() and second.credentials("box-a").exists()
