"""An end is believed when the provider has said so twice, to a key that has seen the box alive."""

from __future__ import annotations

import pytest
from rental import order_for
from stand_in_providers import KEYS, LOOKS_ONLY, OTHERS

from boxcar.laptop.providers import known
from boxcar.laptop.providers.gone import (
    APART_S,
    end_until_gone,
    look_at_box,
    stop_until_stopped,
)
from boxcar.shared.errors import MayStillBillError


@pytest.fixture
def id(provider):
    return provider.create(order_for(provider))


def test_it_is_gone_after_two_looks_thirty_seconds_apart(provider, server, clock, id):
    begun_s = clock.at_s
    end_until_gone(provider, id, has_seen=True)
    assert clock.at_s - begun_s >= APART_S and server.boxes == {}
    reads = [call for call, _key in server.asked if call == "read"]
    assert len(reads) == 3 and server.calls("end") == 1


@pytest.mark.parametrize("kind", ["nothing", "back"])
def test_a_yes_that_did_nothing_or_came_back_is_seen_and_asked_for_again(
    provider, server, id, kind
):
    server.fault("end", kind)
    end_until_gone(provider, id, has_seen=True)
    assert server.boxes == {} and server.calls("end") == 2


def test_on_page_two_a_yes_that_did_nothing_is_seen_as_well(provider, server):
    for number in range(30):
        server.stranger(f"stranger {number}")
    id = provider.create(order_for(provider))
    server.fault("end", *["nothing"] * 99)
    with pytest.raises(MayStillBillError, match="MAY STILL BILL"):
        end_until_gone(provider, id, has_seen=True)
    assert id in server.boxes and len(server.boxes) == 31


@pytest.mark.parametrize("kind", ["before 500", "429 2", "cut", "html", "after 502", "cut after"])
def test_an_end_is_asked_for_again_at_429_and_5xx(provider, server, id, kind):
    server.fault("end", kind)
    end_until_gone(provider, id, has_seen=True)
    assert server.boxes == {}


@pytest.mark.parametrize("call", ["read", "list", "end"])
@pytest.mark.parametrize("kind", ["before 500", "html", "cut"])
def test_what_cannot_be_asked_bills(provider, server, id, call, kind):
    server.fault(call, *[kind] * 999)
    with pytest.raises(MayStillBillError) as raised:
        end_until_gone(provider, id, has_seen=True)
    assert id in str(raised.value) and provider.console in str(raised.value)


def test_a_key_that_never_saw_it_proves_nothing(provider, server, monkeypatch, id):
    monkeypatch.setenv(KEYS[server.name], OTHERS)
    other = known.open_provider(server.name)
    assert look_at_box(other, id).is_gone, "which is what its account says"
    with pytest.raises(MayStillBillError, match="never seen"):
        end_until_gone(other, id, has_seen=False)
    assert id in server.boxes


def test_a_key_without_the_right_ends_nothing_and_says_so(provider, server, monkeypatch, id):
    monkeypatch.setenv(KEYS[server.name], LOOKS_ONLY)
    server.boxes[id].owner = LOOKS_ONLY
    with pytest.raises(MayStillBillError, match="lacks the right"):
        end_until_gone(known.open_provider(server.name), id, has_seen=True)
    assert id in server.boxes


def test_somebody_else_may_have_ended_it(provider, server, id):
    del server.boxes[id]
    end_until_gone(provider, id, has_seen=True)
    assert server.calls("end") == 0


def test_an_empty_list_while_others_live_is_no_answer(provider, server, id):
    del server.boxes[id]
    look = look_at_box(provider, id, others=["another-one"])
    assert not look.is_gone and "lists no box at all" in look.doubt


def test_a_stop_is_believed_when_it_was_seen_twice(provider, server, clock, id):
    if not provider.has_stop:
        with pytest.raises(MayStillBillError, match="no stop"):
            stop_until_stopped(provider, id)
        return
    while provider.read_box(id).state != "running":
        pass
    begun_s = clock.at_s
    box = stop_until_stopped(provider, id)
    assert box.state == "stopped" and clock.at_s - begun_s >= APART_S
    assert id in server.boxes, "its disk bills on"


def test_only_the_box_that_was_named_is_ended(provider, server, id):
    others = [provider.create(order_for(provider)) for _ in range(2)] + [server.stranger().id]
    end_until_gone(provider, id, has_seen=True, others=others)
    assert sorted(server.boxes) == sorted(others)
