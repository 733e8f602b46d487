"""`orphans`: what bills and belongs to nobody, by the provider's list. Strangers' are counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from rental import QuickClock, order_for
from stand_in_providers import KEY, KEYS, OTHERS, SECRET, environment, stand_in

from boxcar.laptop.common import provider_keys
from boxcar.laptop.providers import calls, known
from boxcar.laptop.providers.rented_record import RentedBox, note, read_records, write_record
from boxcar.laptop.providers.whose import sort_boxes
from boxcar.laptop.verbs.orphans import orphans
from boxcar.shared.errors import InputError


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(calls, "CLOCK", QuickClock().clock())
    monkeypatch.setattr(provider_keys, "_hidden", {})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in provider_keys.VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["vastai", "runpod", "lambda"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with stand_in(request.param) as made:
        for name, value in environment(made).items():
            monkeypatch.setenv(name, value)
        yield made
        assert made.wrong == []


def rented(server: Any, **changes: Any) -> RentedBox:
    """A box that was rented, and its record."""
    provider = known.open_provider(server.name)
    order = order_for(provider)
    record = RentedBox(
        order.nonce, provider.name, order.run, "box-a", "/job.yaml", order.label,
        provider.access.fingerprint, "2026-11-29T00:00:00Z", order.offer.gpu, order.offer.gpus,
        order.offer.rate, order.offer.rate, "USD",
    )  # fmt: skip
    return note(write_record(record), "seen_at", **{"id": provider.create(order), **changes})


def found(capsys: pytest.CaptureFixture[str], code: int) -> list[dict[str, Any]]:
    assert orphans(as_json=True) == code
    return json.loads(capsys.readouterr().out)["accounts"]


def test_what_is_at_work_is_no_orphan_and_strangers_are_counted(server, capsys):
    record = rented(server, up_at="2026-11-29T00:01:00Z")
    for number in range(30):
        server.stranger(f"stranger {number}")
    [account] = found(capsys, 0)
    [box] = account["ours"]
    assert (box["id"], box["is_orphan"], account["strangers"]) == (record.id, False, 30)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": ""}, "never answered"),
        ({}, "never came up"),
        ({"up_at": "2026-11-29T00:01:00Z", "gone_at": "2026-11-29T01:00:00Z"}, "yet it is listed"),
        ({"id": "", "refused_at": "2026-11-29T01:00:00Z"}, "yet it is listed"),
        ({"id": "", "missing_at": "2026-11-29T01:00:00Z"}, "yet it is listed"),
        ({"up_at": "2026-11-29T00:01:00Z", "end_asked_at": "2026-11-29T01:00:00Z"}, "confirmed"),
    ],
)
def test_one_that_nobody_goes_on_with_is_found_on_any_page(server, capsys, changes, why):
    for number in range(40):
        server.stranger(f"stranger {number}")
    rented(server, **changes)
    [account] = found(capsys, 1)
    [box] = account["ours"]
    assert box["is_orphan"] and why in box["why"]


def test_it_is_ended_by_its_id_and_only_it(server, capsys):
    kept, record = rented(server, up_at="2026-11-29T00:01:00Z"), rented(server)
    stranger = server.stranger()
    assert orphans(end=record.id) == 0
    assert sorted(server.boxes) == sorted([kept.id, stranger.id])
    closed = {one.nonce: one.gone_at for one in read_records()[0]}
    assert closed[record.nonce] and not closed[kept.nonce]


def test_one_without_an_answer_is_ended_and_its_record_closed(server, capsys):
    record = rented(server, id="")
    [id] = server.boxes
    assert orphans(end=id) == 0 and server.boxes == {}
    [closed] = read_records()[0]
    assert closed.nonce == record.nonce and closed.id == id and closed.gone_at


def test_a_strangers_box_and_one_at_work_are_refused(server, capsys):
    record, stranger = rented(server, up_at="2026-11-29T00:01:00Z"), server.stranger()
    for id, words in ((stranger.id, "stranger"), (record.id, "end is that of the run")):
        with pytest.raises(InputError, match=words):
            orphans(end=id)
    assert len(server.boxes) == 2 and server.calls("end") == 0


def test_one_of_another_machine_is_no_orphan_and_is_not_ended_unasked(
    server, capsys, monkeypatch, tmp_path
):
    record = rented(server, up_at="2026-11-29T00:01:00Z")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another-laptop"))
    [account] = found(capsys, 0)
    assert "another machine" in account["ours"][0]["why"]
    with pytest.raises(InputError, match="another machine"):
        orphans(end=record.id)
    assert record.id in server.boxes


def test_an_end_that_did_nothing_is_75_and_said_in_capitals(server, capsys):
    record = rented(server)
    server.fault("end", *["nothing"] * 99)
    assert orphans(end=record.id) == 75
    said = capsys.readouterr().err
    assert "MAY STILL BILL" in said and record.id in said and "https://" in said
    assert found(capsys, 1)[0]["ours"][0]["why"].startswith("its end was asked for")


def test_another_accounts_key_proves_nothing(server, capsys, monkeypatch):
    record = rented(server)
    monkeypatch.setenv(KEYS[server.name], OTHERS)
    with pytest.raises(InputError):
        orphans(end=record.id)
    assert read_records()[0][0].gone_at is None and record.id in server.boxes


def test_a_list_that_cannot_be_had_is_75_and_no_all_clear(server, capsys):
    server.fault("list", *["before 500"] * 99)
    [account] = found(capsys, 75)
    assert "500" in account["problem"]


def test_without_a_key_it_says_what_to_type(monkeypatch, server):
    monkeypatch.delenv(KEYS[server.name])
    with pytest.raises(InputError, match="export"):
        orphans()


def test_one_that_was_ended_elsewhere_is_said_and_closed_by_its_id(server, capsys):
    record = rented(server, up_at="2026-11-29T00:01:00Z")
    server.stranger()
    del server.boxes[record.id]
    assert orphans() == 0
    assert "does not list" in capsys.readouterr().err
    assert orphans(end=record.id) == 0
    assert read_records()[0][0].gone_at and server.calls("end") == 0


def test_no_key_and_no_secret_is_said_or_written(server, capsys, tmp_path):
    record = rented(server)
    orphans()
    orphans(end=record.id)
    said = "".join(capsys.readouterr())
    written = "".join(p.read_text() for p in tmp_path.rglob("*") if p.is_file())
    assert not any(secret in text for text in (said, written) for secret in (KEY, SECRET))


def test_a_second_box_of_one_order_is_an_orphan(server):
    record = rented(server, up_at="2026-11-29T00:01:00Z")
    provider = known.open_provider(server.name)
    [box] = provider.list_boxes()
    twin = type(box)(**{**vars(box), "id": "twin"})
    whose = sort_boxes([box, twin], [record])
    assert [(one.id, one.is_orphan) for one in whose.ours] == [(box.id, False), ("twin", True)]
