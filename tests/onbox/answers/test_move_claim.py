from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import InputError
from boxcar.shared.files import attempt, codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import move_claim

AT = "2026-11-22T00:00:00.000Z"
OLD = Claim("a", "q1", "box-a", AT)
NEW = Claim("a", "q2", "box-b", AT, moved_from="q1")


@pytest.fixture
def run(tmp_path: Path) -> RunOnBox:
    made = RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path))
    for folder in made.tier.folders():
        folder.mkdir(parents=True)
    return made


def hold(run: RunOnBox, claim: Claim) -> None:
    run.tier.claim("a").write_bytes(codec.to_document(claim))


def moved(run: RunOnBox, *, is_told: bool = False) -> bool:
    return move_claim.answer(run_asks.MoveClaim(NEW, "q1", is_told), run).is_new


@pytest.mark.parametrize("is_claimed", [True, False])
def test_the_new_claim_takes_the_place_of_the_old_one_and_leaves_nothing_else(run, is_claimed):
    if is_claimed:
        hold(run, OLD)
    assert moved(run)
    assert attempt.read_claim(run.tier.claim("a")) == NEW
    assert not moved(run)
    assert list(run.tier.claims.iterdir()) == [run.tier.claim("a")]


def test_the_claim_keeps_what_the_cell_was_asked_for(run):
    hold(run, replace(OLD, saying="one"))
    assert moved(run)
    assert attempt.read_claim(run.tier.claim("a")) == replace(NEW, saying="one")
    assert not moved(run)


def test_the_claim_is_never_gone_in_between(run, monkeypatch):
    hold(run, OLD)
    monkeypatch.setattr(Path, "unlink", None)
    assert moved(run)


def test_while_the_agent_of_the_old_queue_is_at_work_nothing_is_moved(run, monkeypatch):
    monkeypatch.setattr(move_claim, "PATIENCE_S", 0.1)
    hold(run, OLD)
    fd = lock.try_hold(run.tier.lock("q1"))
    assert fd is not None
    with pytest.raises(InputError, match=r"agent of q1 is at work, so a stays.*stop --queue q1"):
        moved(run)
    assert attempt.read_claim(run.tier.claim("a")) == OLD
    assert moved(run, is_told=True), "a tier of its own: the cell is another's already"
    os.close(fd)


def test_a_cell_of_a_third_queue_is_not_taken(run):
    hold(run, Claim("a", "q3", "box-c", AT))
    with pytest.raises(InputError, match="a belongs to q3 by now"):
        moved(run)


def test_a_cell_that_was_published_meanwhile_stays(run):
    hold(run, OLD)
    run.tier.cell("a").mkdir()
    run.tier.manifest("a").write_bytes(b"{}")
    with pytest.raises(InputError, match="is published by now"):
        moved(run)
    assert attempt.read_claim(run.tier.claim("a")) == OLD


def test_nothing_is_written_through_a_link(run, tmp_path):
    run.tier.claim("a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="symbolic link"):
        moved(run)
    assert not (tmp_path / "elsewhere").exists()


def test_a_cell_that_nobody_claimed_needs_no_stop_of_its_queue(run):
    fd = lock.try_hold(run.tier.lock("q1"))
    assert fd is not None
    assert moved(run)
    assert attempt.read_claim(run.tier.claim("a")) == NEW
    later = replace(NEW, at="2026-11-22T00:00:09.000Z")
    again = move_claim.answer(run_asks.MoveClaim(later, "q1", is_told=False), run)
    assert not again.is_new, "a move that was killed before its lines goes on"
    os.close(fd)


def test_of_an_agent_and_a_move_at_the_same_moment_one_gets_the_cell(run, monkeypatch):
    monkeypatch.setattr(move_claim, "PATIENCE_S", 0.1)
    create_once = atomic.create_once

    def after_the_agent(path: Path, data: bytes) -> bool:
        hold(run, OLD)
        return create_once(path, data)

    monkeypatch.setattr(atomic, "create_once", after_the_agent)
    fd = lock.try_hold(run.tier.lock("q1"))
    assert fd is not None
    with pytest.raises(InputError, match="agent of q1 is at work, so a stays"):
        moved(run)
    assert attempt.read_claim(run.tier.claim("a")) == OLD
    os.close(fd)
