"""Each provider against its stand-in: what is kept, what is refused, what is called unclear."""

from __future__ import annotations

import dataclasses
import json

import pytest
from rental import order_for
from stand_in_providers import KEY, KEYS, LOOKS_ONLY, OTHERS, SECRET

from boxcar.laptop.providers import known
from boxcar.laptop.providers.calls import check_base
from boxcar.laptop.providers.provider import (
    Doubt,
    NoRights,
    Refused,
    Unclear,
    Wish,
    label_of,
    nonce_in,
)
from boxcar.shared.errors import InputError


def test_offers_are_what_can_be_had_cheapest_first(provider):
    offers = provider.offers(Wish(disk_gb=30))
    assert offers and [one.rate for one in offers] == sorted(one.rate for one in offers)
    assert all(one.gpu and one.gpus and one.currency == "USD" for one in offers)
    assert all(one.gpu != "L4" for one in offers), "that one is out of stock"


def test_a_search_spends_nothing(provider, server):
    provider.offers(Wish(disk_gb=30))
    assert {call for call, _key in server.asked} == {"search"} and server.ever == {}


def test_a_box_that_was_rented_is_in_the_list_under_its_label_and_its_stamp(provider, server):
    order = order_for(provider)
    id = provider.create(order)
    [box] = provider.list_boxes()
    assert (box.id, box.label, box.nonce) == (id, order.label, order.nonce)
    for label in ("renamed in the console", None):
        server.boxes[id].label = label
        assert provider.list_boxes()[0].nonce == order.nonce, "people rename boxes"


def test_one_that_runs_has_an_address_and_a_price(provider, server):
    id = provider.create(order_for(provider))
    server.address = ("127.0.0.1", 2222)
    seen = [provider.read_box(id) for _ in range(3)]
    assert [one.state for one in seen if one][-1] == "running"
    assert seen[-1].has_address and seen[-1].host == "127.0.0.1" and seen[-1].rate


def test_one_that_was_ended_is_none(provider):
    id = provider.create(order_for(provider))
    assert provider.read_box(id)
    provider.end_box(id)
    assert provider.read_box(id) is None and provider.list_boxes() == []
    provider.end_box(id)  # again: it is gone already


def test_what_is_kept_of_a_list_has_no_secret(provider, server):
    provider.create(order_for(provider))
    server.stranger()
    kept = json.dumps([dataclasses.asdict(one) for one in provider.list_boxes()])
    assert SECRET not in kept and KEY not in kept


def test_a_list_of_many_pages_is_read_to_its_end(provider, server):
    for number in range(60):
        server.stranger(f"stranger {number}")
    id = provider.create(order_for(provider))
    found = provider.list_boxes()
    assert len(found) == 61 and id in {one.id for one in found}
    assert sum(one.is_ours for one in found) == 1


@pytest.mark.parametrize("kind", ["before 503", "429 3", "429", "cut", "html", "redirect"])
def test_a_question_is_asked_again_where_that_changes_nothing(provider, server, clock, kind):
    server.fault("list", kind)
    assert provider.list_boxes() == []
    assert server.calls("list") == 2
    assert clock.slept_s and (kind != "429 3" or max(clock.slept_s) >= 3)


@pytest.mark.parametrize("kind", ["before 503", "429", "cut", "html", "redirect"])
def test_a_list_that_cannot_be_had_is_a_doubt_and_never_empty(provider, server, kind):
    server.fault("list", *[kind] * 9)
    with pytest.raises(Doubt):
        provider.list_boxes()


@pytest.mark.parametrize("kind", ["after 502", "after 500", "cut after", "cut", "html", "id 500",
                                  "id 400", "nothing", "redirect"])  # fmt: skip
def test_an_answer_to_a_create_that_says_nothing_is_unclear_and_not_repeated(
    provider, server, kind
):
    order = order_for(provider)
    server.fault("create", kind)
    with pytest.raises(Unclear) as raised:
        provider.create(order)
    assert server.calls("create") == 1
    assert raised.value.id == ("" if kind[:2] != "id" else next(iter(server.ever)))


def test_an_offer_that_is_gone_is_a_clear_no(server):
    provider = known.open_provider(server.name)
    order = order_for(provider)
    if server.name == "vastai":
        server.offers.clear()
    else:
        server.fault("create", "before 400")
    with pytest.raises(Refused) as raised:
        provider.create(order)
    assert server.ever == {}
    assert raised.value.is_of_offer is (server.name != "lambda")


def test_an_empty_balance_is_a_clear_no_for_each_offer(provider, server):
    if server.name == "lambda":
        pytest.skip("Lambda's contract knows no balance")
    order = order_for(provider)
    server.credit = 0.0
    with pytest.raises(Refused) as raised:
        provider.create(order)
    assert not raised.value.is_of_offer and server.ever == {}


@pytest.mark.parametrize("key", ["a-wrong-key-000", LOOKS_ONLY])
def test_a_key_that_is_wrong_or_lacks_the_right_is_said_and_not_shown(monkeypatch, server, key):
    order = order_for(known.open_provider(server.name))
    monkeypatch.setenv(KEYS[server.name], key)
    provider = known.open_provider(server.name)
    with pytest.raises((NoRights, Refused)) as raised:
        provider.create(order)
    assert key not in str(raised.value) and "key" in str(raised.value)
    assert server.ever == {}


def test_the_key_of_another_account_sees_none_of_the_boxes(monkeypatch, provider, server):
    id = provider.create(order_for(provider))
    monkeypatch.setenv(KEYS[server.name], OTHERS)
    other = known.open_provider(server.name)
    assert other.read_box(id) is None and other.list_boxes() == []
    assert other.access.fingerprint != provider.access.fingerprint


def test_only_vast_tells_a_balance(provider, server):
    found = provider.balance()
    assert (found is not None) is (server.name == "vastai")
    assert found is None or (found.amount, found.currency) == (25.0, "USD")


def test_no_key_and_no_address_of_a_record_is_in_its_repr(provider):
    assert KEY not in repr(provider.access) and KEY not in repr(vars(provider.access).keys())


@pytest.mark.parametrize(
    "address",
    ["http://example.org", "ftp://127.0.0.1", "https://user:word@example.org", "https://", "x",
     "http://localhost:8000", "http://127.0.0.1.example.org", "https://e.org/?a=b", "https://[x"],
)  # fmt: skip
def test_a_key_goes_to_https_or_to_this_machine_only(address):
    with pytest.raises(InputError, match="VAST_URL"):
        check_base("VAST_URL", "https://usual", {"VAST_URL": address})


def test_the_usual_address_counts_where_none_is_given():
    assert check_base("VAST_URL", "https://usual", {}) == "https://usual"
    assert check_base("VAST_URL", "https://u", {"VAST_URL": "https://e.org/"}) == "https://e.org"


def test_a_label_is_of_few_letters_and_found_again():
    label = label_of("0123456789ab", "Mein Lauf/Übung_7 " * 9)
    assert len(label) <= 64 and set(label) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert nonce_in(label) == "0123456789ab" == nonce_in("x", "0123456789ab:run")
    assert nonce_in("boxcar training") == nonce_in(None, "somebody's") == ""


def test_runpod_never_puts_the_keys_of_the_account(provider, server):
    order = order_for(provider)
    box = server.ever[provider.create(order)]
    if server.name == "runpod":
        assert box.body["env"]["PUBLIC_KEY"] == order.public_key
        assert box.body["startSsh"] is True and box.body["ports"] == ["22/tcp"]
    if server.name == "lambda":
        [name] = box.body["ssh_key_names"]
        assert server.keys[name] == order.public_key and server.keys["laptop"]
    if server.name == "vastai":
        assert provider.admit_key(box.id, order.public_key)
        assert server.keys == {box.id: order.public_key}
