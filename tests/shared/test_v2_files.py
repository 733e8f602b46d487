"""One real file of each format of which there is a version 2; see test_v1_files.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flips import flipped
from journal_lines import chained

from boxcar.shared import state
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import attempt, codec, delivered, heartbeat, journal
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.heartbeat import Heartbeat, Seen
from boxcar.shared.files.journal import JournalEnd
from boxcar.shared.state import Verified

V2 = Path(__file__).resolve().parents[1] / "data" / "v2"
DOCUMENTS: dict[str, Any] = {
    "claim.json": Claim,
    "delivered.json": Delivered,
    "heartbeat.json": Heartbeat,
    "heartbeat_seen.json": Heartbeat,
}
# By an agent that made its claims beforehand, and filled them up with blanks.
FILLED_UP = "claim_made_beforehand.json"
CHECKED = ("claim.json", FILLED_UP, "delivered.json")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_written_back_byte_for_byte(name):
    data = (V2 / name).read_bytes()
    assert codec.to_document(codec.from_document(DOCUMENTS[name], data, name)) == data


@pytest.mark.parametrize("name", CHECKED)
def test_each_of_its_flipped_bits_is_damage(name):
    data = (V2 / name).read_bytes()
    for bad in flipped(data, 1_000, seed=3):
        with pytest.raises(DamagedError):
            codec.from_document(DOCUMENTS.get(name, Claim), bad, name)


def test_what_a_later_program_adds_is_kept_under_a_check_of_its_own():
    claim = attempt.read_claim(V2 / "claim.json")
    assert claim
    extra = {"from": "q2", "check": "not this"}
    more = Claim(claim.cell, claim.queue, claim.box, claim.at, extra=extra)
    data = codec.to_document(more)
    assert codec.from_document(Claim, data, "here").extra == {"from": "q2"}
    assert data.count(b'"check"') == 1


def test_every_file_is_read_here():
    journals = {"journal.jsonl", "journal-after-v1.jsonl"}
    # What a training writes is read again in tests/training/test_v2_files.py.
    assert {path.name for path in V2.iterdir()} == {*DOCUMENTS, FILLED_UP, *journals, "training"}


def test_the_claim():
    claim = Claim("a", "q1", "box-a", "2026-11-22T04:28:11.028Z")
    assert attempt.read_claim(V2 / "claim.json") == claim
    saying = "b7bdd21ea14a74141150fbcd8e4c9ab0cf4974c58dfacca2495981078c550782"
    claim = Claim("n3", "queue", "box-a", "2026-11-27T09:02:27.533Z", saying=saying)
    assert attempt.read_claim(V2 / FILLED_UP) == claim


def test_what_was_delivered():
    endpoint = "62db650f3b9ec5fd73d262818cce29daa760e71136fc6ea71c0caa52ef022cdf"
    assert delivered.read_delivered(V2 / "delivered.json") == Delivered({endpoint: Cursor(seq=14)})


def test_the_heartbeat_says_what_the_log_of_its_cell_seems_to_say():
    beat = heartbeat.read_heartbeat(V2 / "heartbeat_seen.json")
    assert beat and beat.seen == Seen(
        **{"epoch": 2.0, "epochs": 5, "step": 86, "steps": 100, "numbers": {"loss": 1.3754}},
        **{"per_s": 4.94, "left_s": 65.65691518832664},
    )
    older = heartbeat.read_heartbeat(V2 / "heartbeat.json")
    assert older and older.seen is None


def test_the_heartbeat_says_how_far_the_journal_was():
    beat = heartbeat.read_heartbeat(V2 / "heartbeat.json")
    assert beat and beat.journal == JournalEnd(14, "727a58252979e4f7")
    assert journal.read_journal(V2 / "journal.jsonl").end == beat.journal


def test_the_journal_is_read_and_written_back_byte_for_byte():
    data = (V2 / "journal.jsonl").read_bytes()
    reading = journal.parse_journal(data, "journal.jsonl")
    assert chained(reading.events) == data and len(reading.events) == 14


def test_the_journal_that_version_1_began_replays_to_three_verified_cells():
    found = state.replay(journal.read_journal(V2 / "journal-after-v1.jsonl").events)
    states = {name: type(record.state) for name, record in found.cells.items()}
    assert states == dict.fromkeys("abc", Verified)
    assert found.session and found.session.ended == "queue.done" and found.last_seq == 21
