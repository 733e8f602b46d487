"""A laptop whose clock is wrong, or jumps while `up` and `down` wait: what they wait for is counted
by a clock that only runs forward, and the box's deadline by the box's own.
"""

from __future__ import annotations

import pytest
from forked_verb import WRONG_CLOCK

CLOCKS = ["3600", "-86400", "jumps"]


@pytest.fixture(params=CLOCKS)
def clock(request):
    return {WRONG_CLOCK: request.param}


def test_a_lost_order_is_looked_for_as_long_as_by_a_right_clock(renter, clock):
    renter.server.fault("create", "before 503")
    said = renter.up("--boxes", "1", **clock).ended(75)
    assert "MAY STILL BILL" in said.err and not renter.records()[0]["missing_at"]
    by_wrong = renter.server.calls("list")
    renter.server.fault("create", "before 503")
    renter.up("--boxes", "1").ended(75)
    # The second one looks for the first order, then asks whether another laptop was there.
    second = renter.server.calls("list") - by_wrong
    assert by_wrong >= 10, "two minutes, a look every few seconds"
    assert second >= 2 * (by_wrong - 2)


def test_one_that_shows_up_late_is_found_and_rented_once(renter, clock):
    renter.server.lag = 8
    renter.server.fault("create", "after 502")
    renter.up("--boxes", "1", **clock).ended(0)
    assert renter.server.calls("create") == 1 == len(renter.server.boxes)


def test_no_box_is_called_gone_that_comes_back(renter, clock):
    renter.up(**clock).ended(0)
    renter.mark_ended("box-a", "box-b")
    ids = {one["box"]: one["id"] for one in renter.records()}
    renter.server.fault("end", "back", "nothing")
    renter.type("down", typed=f"{ids['box-a']}\n{ids['box-b']}\n", **clock).ended(0)
    assert renter.server.boxes == {} and renter.seen_gone() == ["box-a", "box-b"]
    assert renter.server.calls("end") >= 3, "asked again where it did nothing"


def test_a_box_that_boots_slowly_is_not_given_up_by_a_clock_that_jumps(renter, clock):
    renter.server.boots = 20
    renter.up("--boxes", "1", **clock).ended(0)
    assert len(renter.server.ever) == 1 and renter.server.calls("end") == 0


def test_a_deadline_is_a_length_of_time_and_no_instant(renter, clock):
    renter.up("--boxes", "1", "--hours", "10", **clock).ended(0)
    for id in renter.deadlines():
        folder = renter.home / "state" / "boxcar" / "boxes" / id / "boxcar" / "tiny"
        assert (folder / "deadline").read_text().split()[1:] == ["21600", "604800"]


def test_one_that_took_the_place_of_another_a_day_before_stands_under_the_alias(renter):
    renter.up("--boxes", "1").ended(0)
    [old] = renter.records()
    del renter.server.boxes[old["id"]]
    renter.up("--replace", old["box"], **{WRONG_CLOCK: "-86400"}).ended(0)
    renter.up("--boxes", "1").ended(0)
    assert renter.server.calls("create") == 2 and len(renter.server.boxes) == 1
    assert renter.orphans() == []


def test_two_laptops_at_once_end_nothing_and_each_sees_the_others_box(renter, tmp_path):
    """Within the lag of the list both may rent: then both stand, and a person decides."""
    renter.server.lag = 6
    other = {"XDG_STATE_HOME": str(tmp_path / "another-laptop")}
    words, flags = ("up", "--boxes", "1"), ("-p", renter.server.name)
    both = [
        renter.project.start(*words, *flags, env=renter.env | env, stdin=-1) for env in ({}, other)
    ]
    for process in both:
        process.stdin.write("y\n")
        process.stdin.close()
        process.stdin = None
    codes = sorted((process.communicate(), process.returncode)[1] for process in both)
    server = renter.server
    assert codes in ([0, 0], [0, 2]), "rented, or refused as the other one was there first"
    assert server.calls("create") == codes.count(0) == len(server.boxes)
    assert server.calls("end") == server.calls("stop") == 0
    server.lag = 0
    for box in server.boxes.values():
        box.hidden = 0
    for env in ({}, other):
        document = renter.type("orphans", "--json", **env).document
        found = [box for one in document["accounts"] for box in one["ours"]]
        assert {box["id"] for box in found} == server.boxes.keys()
        assert not any(box["is_orphan"] for box in found)
