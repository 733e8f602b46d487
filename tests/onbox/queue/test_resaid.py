from __future__ import annotations

from typing import Any

import pytest

from boxcar.shared.cell import cell_line
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.state import (
    CellRecord,
    CellState,
    Claimed,
    Failed,
    Preempted,
    Queued,
    Running,
    Waiting,
)
from onbox.queue import resaid
from onbox.queue.resaid import FAILURE, Standing, sentence, standing

AT = "2026-11-21T03:27:43.973Z"
LINE = cell_line.parse(b"a.yaml t 3 name=a lr=1", 0, 1)


def claim(saying: str | None = "one", moved_from: str | None = None) -> Claim:
    return Claim("a", "q1", "box-a", AT, moved_from, saying)


def started(saying: str | None = None, text: str = "a.yaml t 3 name=a lr=1") -> Event:
    line = cell_line.parse(text.encode(), 0, 1)
    data = {"cell": "a", "cfg": line.cfg, "epochs": line.epochs, "saying": saying}
    kept = {
        key: value
        for key, value in (data | cell_line.begun_fields(line)).items()
        if value is not None
    }
    return Event(1, "evt_1", AT, "cell.started", kept)


def failed(failure: str) -> CellState:
    return Failed(1, AT, failure, "", "rel", is_final=False)


def found(now: str | None, state: CellState, attempts: int = 1, **claimed: Any) -> Standing:
    return standing(now, claim(**claimed), CellRecord(state, attempts=attempts), None)


BROKEN_OFF = [Running(1, AT), Preempted(1, AT), Waiting(1, AT, "OOM", awaits_room=False)]


@pytest.mark.parametrize("state", [*BROKEN_OFF, failed("E"), failed(FAILURE), Queued()])
def test_the_same_saying_goes_on(state: CellState) -> None:
    assert found("one", state) is Standing.AS_BEGUN


@pytest.mark.parametrize("state", [*BROKEN_OFF, failed("E")])
def test_where_nobody_knows_one_of_the_two_it_is_taken(state: CellState) -> None:
    assert found(None, state) is Standing.AS_BEGUN
    assert found("two", state, saying=None) is Standing.AS_BEGUN
    assert standing("two", None, CellRecord(), None) is Standing.AS_BEGUN


@pytest.mark.parametrize("state", BROKEN_OFF)
def test_what_was_broken_off_is_not_gone_on_with_under_another(state: CellState) -> None:
    assert found("two", state) is Standing.OTHERWISE


def test_what_failed_for_good_begins_anew() -> None:
    assert found("two", failed("E")) is Standing.ANEW


def test_what_was_refused_stays_refused_until_its_line_is_as_it_was() -> None:
    assert found("two", failed(FAILURE)) is Standing.OTHERWISE


def test_what_was_only_claimed_begins_as_its_line_says_now() -> None:
    assert found("two", Claimed(AT), attempts=0) is Standing.ANEW


def test_what_was_moved_here_was_begun_elsewhere() -> None:
    assert found("two", Claimed(AT), attempts=0, moved_from="q2") is Standing.OTHERWISE


def test_where_an_older_claim_says_nothing_its_last_start_speaks() -> None:
    record = CellRecord(Preempted(1, AT), attempts=1)
    assert standing("two", claim(None), record, started("one")) is Standing.OTHERWISE
    assert standing("one", claim(None), record, started("one")) is Standing.AS_BEGUN
    assert standing("two", claim(None), record, started()) is Standing.AS_BEGUN


def test_the_sentence_says_as_what_it_was_begun() -> None:
    other = started(text="a.yaml t 3 name=a lr=2")
    assert sentence(LINE, other) == "a was begun as 'a.yaml t 3 name=a lr=2'"


def test_the_same_line_with_another_config_says_so() -> None:
    assert sentence(LINE, started()) == "a was begun with another text of a.yaml"


def test_epochs_that_a_line_leaves_to_the_job_are_no_other_line() -> None:
    bare = cell_line.parse(b"a.yaml t name=a lr=1", 0, 1)
    assert sentence(bare, started()) == "a was begun with another text of a.yaml"


def test_without_a_start_here_there_is_less_to_say() -> None:
    assert sentence(LINE, None) == "a was begun as another line"
    assert resaid.FAILURE == "SAID-OTHERWISE"
