"""`down` and the provider: a typed id, the alias's own address, and gone only when seen so."""

from __future__ import annotations

import json

import pytest
from stand_in_providers import KEYS, OTHERS


@pytest.fixture
def two(renter):
    """Two boxes that are up, and whose run is over; their ids by the alias."""
    renter.up().ended(0)
    renter.mark_ended("box-a", "box-b")
    return {one["box"]: one["id"] for one in renter.records()}


def test_each_id_is_typed_and_only_then_ended_and_seen_gone(renter, two):
    stranger = renter.server.stranger()
    said = renter.type("down", typed=f"{two['box-a']}\n\n").ended(75)
    assert list(renter.server.boxes) == [two["box-b"], stranger.id]
    assert renter.seen_gone() == ["box-a"] and "seen twice" in said.err
    renter.type("down", typed=two["box-b"]).ended(0)
    assert list(renter.server.boxes) == [stranger.id] and renter.seen_gone() == ["box-a", "box-b"]
    assert renter.orphans() == []


def test_without_the_id_nothing_is_ended_and_it_stays_75(renter, two):
    for typed in ("", "yes", "tiny\nbox-a\n1"):
        renter.type("down", typed=typed).ended(75)
    assert len(renter.server.boxes) == 2 and renter.server.calls("end") == 0


def test_one_that_is_gone_from_the_list_is_looked_at_twice_and_closed(renter, two):
    renter.server.stranger()
    for id in two.values():
        del renter.server.boxes[id]
    renter.type("down").ended(0)
    assert renter.seen_gone() == ["box-a", "box-b"] and renter.server.calls("end") == 0


@pytest.mark.parametrize("kind", ["nothing", "before 500"])
def test_an_end_that_is_not_confirmed_stays_open_and_the_next_down_goes_on(renter, two, kind):
    renter.server.fault("end", *[kind] * 400)
    said = renter.type("down", typed=f"{two['box-a']}\n\n").ended(75)
    assert "MAY STILL BILL" in said.err and two["box-a"] in said.err
    assert renter.seen_gone() == [] and two["box-a"] in renter.server.boxes
    renter.server._faults.clear()
    renter.type("down", typed=f"{two['box-a']}\n{two['box-b']}\n").ended(0)
    assert renter.server.boxes == {}


def test_another_accounts_key_closes_nothing(renter, two):
    said = renter.type("down", **{KEYS[renter.server.name]: OTHERS}).ended(75)
    assert renter.seen_gone() == [] and len(renter.server.boxes) == 2
    assert "box-a" in said.err


def test_without_a_key_it_is_as_by_hand(renter, two):
    renter.type("down", **{KEYS[renter.server.name]: ""}).ended(75)
    assert renter.seen_gone() == []


def by_hand(renter, address: tuple[str, int]):
    """A box that the person rented in the console, whose id the box itself has told."""
    box = renter.server.stranger("mine")
    box.host, box.port = "203.0.113.7", 2201
    hosts = renter.project.root / ".boxcar" / "hosts"
    hosts.mkdir(parents=True)
    record = {
        "format": "boxcar.host/1", "alias": "box-a", "host": address[0], "port": address[1],
        "fingerprint": "SHA256:x", "at": "2026-11-29T01:00:00Z", "box": {"instance_id": box.id},
    }  # fmt: skip
    (hosts / "box-a.json").write_text(json.dumps(record))
    (renter.home / ".ssh").unlink()
    (renter.home / ".ssh").mkdir(mode=0o700)
    text = f"Host box-a\n  HostName {address[0]}\n  Port {address[1]}\n"
    (renter.home / ".ssh" / "config").write_text(text)
    renter.mark_ended("box-a")
    return box


def ssh_reads(monkeypatch, renter) -> None:
    """OpenSSH takes the home from the system's users, and not from HOME."""
    folder = renter.home / "bin"
    folder.mkdir()
    config = renter.home / ".ssh" / "config"
    (folder / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F "{config}" "$@"\n')
    (folder / "ssh").chmod(0o755)


@pytest.mark.parametrize("is_its_own", [True, False])
def test_an_id_that_only_the_box_has_said_counts_at_its_aliass_address(
    renter, monkeypatch, is_its_own
):
    box = by_hand(renter, ("203.0.113.7", 2201) if is_its_own else ("203.0.113.9", 2201))
    if renter.server.name == "lambda":
        box.port = 22
        config = renter.home / ".ssh" / "config"
        config.write_text(config.read_text().replace("2201", "22"))
    ssh_reads(monkeypatch, renter)
    path = f"{renter.home / 'bin'}:/usr/bin:/bin"
    said = renter.type("down", typed=box.id, PATH=path)
    if is_its_own:
        assert said.ended(0) and renter.server.boxes == {} and renter.seen_gone() == ["box-a"]
    else:
        assert said.ended(75) and "at another address" in said.err
        assert box.id in renter.server.boxes and renter.server.calls("end") == 0


def test_a_stop_is_seen_twice_and_the_row_says_that_the_disk_bills(renter, two):
    if renter.server.name == "lambda":
        said = renter.type("down", "--verb", "stop").ended(2)
        assert "has no stop" in said.err and len(renter.server.boxes) == 2
        return
    said = renter.type("down", "--verb", "stop").ended(75)
    assert renter.server.calls("stop") == 2 and renter.server.calls("end") == 0
    assert said.err.count("is stopped, seen twice") == 2
    assert "its disk bills until it is destroyed" in said.err and len(renter.server.boxes) == 2
    assert all(one["stopped_at"] for one in renter.records()) and renter.seen_gone() == []
    # Then one is destroyed, by its typed id.
    said = renter.type("down", typed=f"{two['box-a']}\n\n").ended(75)
    assert list(renter.server.boxes) == [two["box-b"]] and renter.seen_gone() == ["box-a"]


def test_a_stop_that_did_nothing_may_still_bill(renter, two):
    if renter.server.name == "lambda":
        pytest.skip("Lambda has no stop")
    renter.server.fault("stop", *["nothing"] * 60)
    said = renter.type("down", "--verb", "stop").ended(75)
    assert "MAY STILL BILL" in said.err and "seen twice" not in said.err
    assert not any(one["stopped_at"] for one in renter.records())
    teardown = json.loads((renter.project.results / "teardown.json").read_text())
    assert not teardown.get("stopped")


@pytest.mark.parametrize("verb", ["destroy", "Stop", ""])
def test_no_other_verb_is_taken(renter, two, verb):
    renter.type("down", "--verb", verb).ended(2)
    assert len(renter.server.boxes) == 2 and renter.server.calls("stop") == 0


def test_without_a_key_nothing_is_stopped(renter, two):
    renter.type("down", "--verb", "stop", **{KEYS[renter.server.name]: ""}).ended(2)
    assert len(renter.server.boxes) == 2


@pytest.mark.parametrize("words", [("down",), ("down", "--verb", "stop")])
def test_one_that_a_list_lacks_for_a_moment_is_not_destroyed(renter, two, words):
    if "--verb" in words and renter.server.name == "lambda":
        pytest.skip("Lambda has no stop")
    for box in renter.server.boxes.values():
        box.hidden = 1
    renter.type(*words).ended(75)
    assert len(renter.server.boxes) == 2 and renter.server.calls("end") == 0
    assert renter.seen_gone() == [], "nobody typed an id"


def test_one_that_a_list_lacks_for_a_moment_is_asked_for_by_its_id(renter, two):
    for box in renter.server.boxes.values():
        box.hidden = 1
    renter.type("down", typed=f"{two['box-a']}\n{two['box-b']}\n").ended(0)
    assert renter.server.boxes == {} and renter.seen_gone() == ["box-a", "box-b"]
