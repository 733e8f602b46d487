from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import InputError
from onbox.answers.request import Request, prefix

SHA = "0a" * 32
HOSTILE = ["", ".", "..", "../x", "/x", "x/y", "x\0", "-x", ".x", "$(touch x)", "x\n", 1, None, []]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("what", ["run", "queue", "cell", "digest"])
def test_a_name_that_could_lead_elsewhere_is_refused_by_its_field(what: str, name: Any) -> None:
    with pytest.raises(InputError, match=what):
        getattr(Request({what: name}), what)


@pytest.mark.parametrize("names", [None, "q1", ["q1", "../q2"], [1]])
def test_queues_are_a_list_of_names(names: Any) -> None:
    with pytest.raises(InputError, match="queue"):
        _ = Request({"queues": names}).queues


def test_a_cell_is_named_as_a_queue_names_it() -> None:
    assert Request({"cell": "größer+2"}).cell == "größer+2"
    for name in ("ends.", "ü" * 101, "a" * 101):
        with pytest.raises(InputError, match="cell"):
            _ = Request({"cell": name}).cell


def test_the_places_are_those_of_this_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    asked = Request({"run": "r", "durable_dir": "/fs", "data_dir": "~/data"})
    assert asked.tier.root == Path("/fs/boxcar/r")
    assert asked.scratch.root == Path("/home/me/data/boxcar/r")


@pytest.mark.parametrize("value", [True, -1, 1.0, "1", None])
def test_a_count_is_a_whole_number_from_0(value: Any) -> None:
    with pytest.raises(InputError, match="lines"):
        Request({"lines": value}).count("lines")


def test_data_is_base64_and_nothing_else() -> None:
    assert Request({"data": "AAH/"}).data("data") == b"\0\1\xff"
    for text in ("AAH", "A AH/", "ä"):
        with pytest.raises(InputError, match="data"):
            Request({"data": text}).data("data")


@pytest.mark.parametrize("value", [None, [], [1], [-1, SHA], ["1", SHA], [1, "x"], [1, SHA, 1]])
def test_what_the_laptop_has_is_a_size_and_a_digest(value: Any) -> None:
    with pytest.raises(InputError, match="have"):
        prefix(value, "have")


def test_a_size_and_a_digest_are_taken() -> None:
    assert prefix([0, SHA], "have") == (0, SHA)
