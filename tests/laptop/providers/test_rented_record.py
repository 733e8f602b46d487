"""The record of a rented box: whole or not at all, read by every later version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from boxcar.laptop.providers.provider import Listed
from boxcar.laptop.providers.rent import _stamped
from boxcar.laptop.providers.rented_record import (
    RentedBox,
    folder_of,
    live_records,
    note,
    read_records,
    write_record,
)
from boxcar.laptop.providers.whose import open_orders
from boxcar.laptop.run import rentals
from boxcar.shared.files import codec

SAMPLE = Path(__file__).parents[2] / "data" / "v1" / "laptop" / "rented.json"


def sample(**changes: object) -> RentedBox:
    record = codec.from_document(RentedBox, SAMPLE.read_bytes(), str(SAMPLE))
    return RentedBox(**{**vars(record), **changes})


def test_the_file_that_version_1_wrote_is_read_and_written_as_it_was():
    record = sample()
    assert (record.id, record.state, record.rate) == ("1001", "rented", 0.41)
    assert codec.to_document(record) == SAMPLE.read_bytes()


def test_a_silent_box_with_a_deadline_may_have_been_stopped_by_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    project = SimpleNamespace(plan=SimpleNamespace(run="my-ablation"))
    write_record(sample(quiet_s=21600, most_s=604800))
    assert rentals.stopped_perhaps(project, ["another"]) == []
    [text] = rentals.stopped_perhaps(project, ["box-a"])
    assert text.startswith("box-a does not answer; its deadline may have stopped it (6h without")
    write_record(sample())
    assert rentals.stopped_perhaps(project, ["box-a"]) == [], "an older `up` asked for none"


def test_a_live_box_counts_before_one_that_is_gone_whatever_the_clock_said(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    project = SimpleNamespace(plan=SimpleNamespace(run="my-ablation"))
    write_record(
        sample(nonce="1" * 12, asked_at="2026-11-29T01:00:00Z", gone_at="2026-11-29T02:00Z")
    )
    write_record(sample(nonce="2" * 12, asked_at="2026-11-28T01:00:00Z", id="1002"))
    assert rentals.rented_boxes(project)["box-a"].id == "1002"


def test_a_field_of_a_newer_version_stays():
    data = SAMPLE.read_bytes().replace(b'"gpus": 1,', b'"gpus": 1, "later": [1],')
    record = codec.from_document(RentedBox, data, "x")
    assert b'"later"' in codec.to_document(record)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"id": ""}, "asked"),
        ({}, "rented"),
        ({"gone_at": "2026-11-29T01:02:03Z"}, "closed"),
        ({"id": "", "refused_at": "2026-11-29T01:02:03Z"}, "closed"),
        ({"id": "", "missing_at": "2026-11-29T01:02:03Z"}, "closed"),
    ],
)
def test_what_nobody_has_closed_is_live(changes, state):
    record = sample(**changes)
    assert record.state == state
    assert live_records([record]) == ([] if state == "closed" else [record])


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        ({}, False),
        ({"id": ""}, True),
        ({"up_at": None}, True),
        ({"end_asked_at": "2026-11-29T01:02:03Z"}, True),
        ({"replaced_at": "2026-11-29T01:02:03Z"}, True),
        ({"end_asked_at": "2026-11-29T01:02:03Z", "gone_at": "2026-11-29T01:02:03Z"}, False),
    ],
)
def test_status_tells_of_boxes_that_nobody_goes_on_with(changes, is_open):
    assert bool(open_orders([sample(**changes)])) is is_open


def test_a_record_is_only_for_its_person_and_no_other_one_is_touched():
    first = write_record(sample())
    second = write_record(sample(nonce="0123456789ab", asked_at="2026-11-29T00:00:00Z"))
    noted = note(first, "gone_at")
    found, damaged = read_records()
    assert [one.nonce for one in found] == [second.nonce, first.nonce] and damaged == []
    assert found[1] == noted and noted.gone_at
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder_of().iterdir())


def test_one_that_cannot_be_read_is_named_and_hides_no_other():
    write_record(sample())
    (folder_of() / "torn.json").write_text('{"format": "boxcar.rented/1", "nonce": "x"')
    found, [damage] = read_records()
    assert len(found) == 1 and "torn.json" in str(damage)


def test_an_id_that_an_error_carried_is_taken_only_with_the_stamp_of_this_order():
    record = sample(id="", nonce="0123456789ab")
    box = Listed("vastai", "1001", "a-stranger", "running", "running")
    ours = replace(box, id="1002", nonce=record.nonce)
    answers = SimpleNamespace(read_box=lambda id: box, list_boxes=lambda: [box, ours])
    assert _stamped(answers, record, "1001") == ours
    answers.list_boxes = lambda: [box]
    assert _stamped(answers, record, "1001") is None
