"""What status, watch and explain say of a cell that its box called failed and verify has proven."""

from __future__ import annotations

import pytest
from run_on_disk import (
    SHA256,
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_started,
    cell_verified,
    make_run,
    queue_done,
)

from boxcar.laptop.run.news import standings
from boxcar.laptop.run.view import CellView
from boxcar.laptop.verbs.explain import explanation
from boxcar.laptop.verbs.status import exit_code
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.laptop.view.run_tables import notes_of_run
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import LAPTOP, Accepted
from boxcar.shared.state import Verified

AT = "2026-11-22T11:00:00.000Z"
SENTENCE = "verified, accepted by verify on 2026-11-22: model.pkl unpickled"


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    """Cell a is published, and its box called it failed."""
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), cell_started("a"), cell_failed("a"), queue_done())
    run.publish("a")
    return run


def accept(run: RunOnDisk, sha256: str = SHA256) -> None:
    made = Accepted("demo", "a", sha256, AT, ("model.pkl",), "0.1.0")
    run.site.tier.accepted("a").write_bytes(codec.to_document(made))


def seen(run: RunOnDisk) -> CellView:
    return next(cell for cell in run.look().cells if cell.name == "a")


def test_it_is_verified_before_any_agent_has_said_so(run: RunOnDisk) -> None:
    assert (seen(run).word, exit_code(run.look())) == ("failed", 1)
    accept(run)
    assert (seen(run).word, seen(run).sentence) == ("verified", SENTENCE)
    assert seen(run).record and isinstance(seen(run).record.state, Verified)
    view = run.look()
    assert exit_code(view) == 0 and not view.failed
    assert f"a: {SENTENCE}" in notes_of_run(RunRows(view, Facts("local", "", "")))
    assert f"a: {SENTENCE}, attempt 1" in standings(view).values()
    assert any(SENTENCE in fact for fact in explanation(run.site, "a").facts)


def test_it_stays_so_once_its_agent_has_said_it(run: RunOnDisk) -> None:
    accept(run)
    type_, data = cell_verified("a")
    run.say("queue_1", agent_started(), (type_, {**data, "by": LAPTOP}), queue_done())
    assert seen(run).sentence == SENTENCE


def test_what_was_accepted_of_an_earlier_result_is_void(run: RunOnDisk) -> None:
    accept(run, sha256="0" * 64)
    assert (seen(run).word, seen(run).accepted) == ("failed", None)


def test_one_that_cannot_be_read_is_no_success_and_is_told_with_the_way_out(
    run: RunOnDisk,
) -> None:
    run.site.tier.accepted("a").write_bytes(b"{")
    assert seen(run).word == "failed"
    [problem] = [text for text in run.look().problems if "accepted/a.json" in text]
    assert problem.startswith("a: ") and "verify" in problem


def test_of_a_cell_that_its_own_box_has_verified_nobody_asks(run: RunOnDisk) -> None:
    run.say("queue_2", agent_started(), cell_started("c"), cell_verified("c"), queue_done())
    run.site.tier.accepted("c").write_bytes(b"{")
    assert not [text for text in run.look().problems if "accepted" in text]
