"""`up` and `down` killed at random instants: nothing is rented twice, lost, or called ended.

Between two kills the same command is typed again, as a person would. The long form, a thousand
kills, is of `make test-faults`; BOXCAR_SEED repeats one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from typing import Any

import pytest
from renter import Renter
from waiting import until

# As many as an `up` of two boxes asks, more or less.
MOST_REQUESTS = 16
FAULTS = {
    "create": ("after 502", "cut after", "cut", "id 500", "before 503"),
    "list": ("before 500", "429 1", "cut"),
    "read": ("before 500", "cut"),
    "stop": ("nothing", "before 500", "after 502", "cut", "429 1"),
    "end": ("nothing", "back", "after 502", "cut", "429 1"),
}


def seed_of(request: Any) -> int:
    return int(os.environ.get("BOXCAR_SEED") or random.SystemRandom().randrange(10**6))


def kill_one(renter: Renter, words: list[str], typed: str, dice: Any) -> bool:
    """Type it, and kill it at some request to the provider, or shortly after; whether it lived."""
    flags = ["-p", renter.server.name]
    at = len(renter.server.asked) + dice.randint(1, MOST_REQUESTS)
    process = renter.project.start(*words, *flags, env=renter.env, stdin=subprocess.PIPE)
    process.stdin.write(typed)
    process.stdin.close()
    process.stdin = None
    until(
        lambda: len(renter.server.asked) >= at or process.poll() is not None,
        "the request at which it is killed, or its end",
    )
    time.sleep(dice.choice((0.0, dice.uniform(0, 0.1))))
    is_alive = process.poll() is None
    if is_alive:
        # A closed terminal and a polite end leave by the same door as Ctrl-C.
        os.kill(process.pid, dice.choice((signal.SIGKILL,) * 3 + (signal.SIGHUP, signal.SIGTERM)))
    process.communicate()
    return is_alive


def hold(renter: Renter) -> None:
    """What must be true after each kill, by what really exists at the provider."""
    real, records = renter.server.boxes, renter.records()
    ours = {id: box for id, box in real.items() if box.stamp}
    by_nonce = {one["nonce"]: one for one in records}
    for id, box in ours.items():
        record = by_nonce.get(box.stamp[:12])
        assert record is not None, f"{id} has no record: nobody would find it"
        assert not record["gone_at"], f"{id} is called gone and is not"
        assert record["id"] in ("", id), f"{id} is another box than its record says"
    live = Counter(box.stamp[:12] for box in ours.values())
    assert max(live.values(), default=0) <= 1, "one order, two boxes"
    aliases = Counter(by_nonce[box.stamp[:12]]["box"] for box in ours.values())
    assert max(aliases.values(), default=0) <= 1, f"an alias was rented twice: {aliases}"


def a_deadline_lies(renter: Renter) -> None:
    """After an `up` that came to its end: on each box in whose question it stood."""
    agreed = {one["id"] for one in renter.records() if one["up_at"] and one.get("most_s")}
    in_use = {one["id"] for one in renter.records() if not (one["gone_at"] or one["end_asked_at"])}
    assert agreed & in_use <= {*renter.deadlines()}
    assert bool(agreed) is (renter.server.name != "lambda"), "which has no stop"


def nobody_is_lost(renter: Renter) -> None:
    """By `orphans`: each box of ours is there, as an orphan or as in use."""
    renter.server._faults.clear()
    # A list that lags has a new box only later; its order stands open till then.
    there = {id for id, box in renter.server.boxes.items() if box.stamp and box.hidden <= 0}
    document = renter.type("orphans", "--json").document
    assert {box["id"] for one in document["accounts"] for box in one["ours"]} >= there


def kill_ups_and_downs(renter: Renter, kills: int, dice: Any) -> int:
    """Rent and end again and again, each under kills; how many hit a living process."""
    hits, server = 0, renter.server
    for number in range(30):
        server.stranger(f"stranger {number}")
    words, typed = ["up", "--boxes", "2"], "y\n"
    renter.type(*words, typed=typed)
    while hits < kills:
        server.lag = dice.choice((0, 0, 2, 5))
        for call, kinds in FAULTS.items():
            if dice.random() < 0.5:
                server.fault(call, dice.choice(kinds))
        was_killed = kill_one(renter, words, typed, dice)
        hits += was_killed
        hold(renter)
        print(hits, "kills", len(renter.records()), "orders", len(server.ever) - 30, "boxes")
        if dice.random() < 0.3:
            nobody_is_lost(renter)
        if not was_killed or dice.random() < 0.1:
            hits += end_all(renter, dice)
    server._faults.clear()
    server.lag = 0
    nobody_is_lost(renter)
    for _ in range(3):
        last = renter.type(*words, typed=typed)
    assert last.code == 0, last
    a_deadline_lies(renter)
    ours = [box for box in server.boxes.values() if box.stamp]
    assert len(ours) == 2 and renter.orphans() == []
    return hits


def end_all(renter: Renter, dice: Any) -> int:
    """`down` of what is up, killed; then typed until all is seen gone, and the run begins anew."""
    renter.server._faults.clear()
    if renter.type("up", "--boxes", "2", typed="y").code == 0:
        a_deadline_lies(renter)
    up = [one for one in renter.records() if one["up_at"] and not one["gone_at"]]
    if len(up) < 2:
        return 0
    renter.mark_ended("box-a", "box-b")
    ids = "".join(f"{one['id']}\n" for one in sorted(up, key=lambda one: one["box"]))
    hits = stop_all(renter, dice) if renter.server.name != "lambda" else 0
    for _ in range(2):
        if dice.random() < 0.7:
            renter.server.fault("end", dice.choice(FAULTS["end"]))
        hits += kill_one(renter, ["down"], ids, dice)
        hold(renter)
        gone = {one["box"]: one["id"] for one in up if one["box"] in renter.seen_gone()}
        assert not {*gone.values()} & renter.server.boxes.keys(), "called gone, and lives"
    renter.server._faults.clear()
    for _ in range(3):
        left = [one for one in up if one["box"] not in renter.seen_gone()]
        typed = "".join(f"{one['id']}\n" for one in sorted(left, key=lambda one: one["box"]))
        last = renter.type("down", typed=typed or "\n")
        if last.code == 0:
            break
    assert last.code == 0, last.err
    assert not {one["id"] for one in up} & renter.server.boxes.keys()
    (renter.project.results / "teardown.json").unlink()
    return hits


def stop_all(renter: Renter, dice: Any) -> int:
    """`down --verb stop`, killed: what is called stopped is, and nothing is destroyed."""
    there, ended = {*renter.server.boxes}, renter.server.calls("end")
    if dice.random() < 0.7:
        renter.server.fault("stop", dice.choice(FAULTS["stop"]))
    hits = kill_one(renter, ["down", "--verb", "stop"], "", dice)
    hold(renter)
    teardown = json.loads((renter.project.results / "teardown.json").read_text())
    by_box = {one["box"]: one for one in renter.records() if not one["gone_at"]}
    called = {by_box[box]["id"] for box in teardown.get("stopped", {})}
    called |= {one["id"] for one in by_box.values() if one["stopped_at"]}
    assert all(renter.server.is_stopped(id) for id in called), "called stopped, and runs"
    assert {*renter.server.boxes} == there and renter.server.calls("end") == ended
    renter.server._faults.clear()
    return hits


@pytest.mark.parametrize("renter", ["vastai"], indirect=True)
def test_up_and_down_killed_at_random_instants(renter, request):
    seed = seed_of(request)
    print(json.dumps({"BOXCAR_SEED": seed, "provider": renter.server.name}))
    assert kill_ups_and_downs(renter, 6, random.Random(seed)) >= 6


@pytest.mark.faults
def test_a_thousand_kills(renter, request):
    """Of three providers; together more than a thousand that hit."""
    seed = seed_of(request)
    print(json.dumps({"BOXCAR_SEED": seed, "provider": renter.server.name}))
    assert kill_ups_and_downs(renter, 334, random.Random(seed)) >= 334
