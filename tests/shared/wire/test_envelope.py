from __future__ import annotations

import json
from typing import Any

import pytest

from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    Message,
    NoRoomError,
    TemporaryError,
)
from boxcar.shared.wire import envelope, news_asks
from boxcar.shared.wire.question import RunOnBox

QUESTION = news_asks.Deliver("q1", "0a" * 32, "/credentials.json")
RUN = RunOnBox("tiny", "/tier", "/data")


def read(out: bytes, code: int = 0, err: str = "") -> news_asks.Delivered:
    return envelope.read_answer(QUESTION, "box-a", code, out, err)


def line(document: dict[str, Any]) -> bytes:
    return envelope.MARK + json.dumps(document).encode() + b"\n"


@pytest.mark.parametrize(
    "out",
    [
        b'BOXCAR-ANSWER {"left": 2}\n',
        b'Welcome to the box!\nBOXCAR-ANSWER {"left": 2}\nlogout\n',
        b'BOXCAR-ANSWER {"left": 1}\nBOXCAR-ANSWER {"left": 2}',
        b'\xff\xfe\x00\n\nBOXCAR-ANSWER {"left": 2, "wire": 1}\r\n',
    ],
)
def test_the_answer_is_found_among_whatever_else_is_printed(out: bytes) -> None:
    assert read(out) == news_asks.Delivered(2)


@pytest.mark.parametrize(
    "out", [b"", b"hello\n", b" BOXCAR-ANSWER {}\n", b'BOXCAR-ANSWER {"lef', b"BOXCAR-ANSWER 1\n"]
)
def test_a_box_that_gave_no_answer_may_give_one_later(out: bytes) -> None:
    with pytest.raises(TemporaryError, match="box-a"):
        read(out, code=1)


def test_what_the_box_said_instead_is_told_from_its_end() -> None:
    with pytest.raises(TemporaryError) as caught:
        read(b"", 139, "x" * 5000 + "\nSegmentation fault\n")
    text = str(caught.value)
    assert "code 139" in text and text.endswith("Segmentation fault")
    assert len(text) < 2000
    with pytest.raises(TemporaryError, match="it printed nothing"):
        read(b"", 255, " \n")


@pytest.mark.parametrize("kind", [InputError, TemporaryError, NoRoomError, DamagedError])
def test_what_went_wrong_on_the_box_is_raised_here_as_it_was_there(kind: type[BoxcarError]) -> None:
    choice = Command("push", note="it appends", or_else=Command("plan", ("--json",)))
    told = envelope.error(kind, Message("there is no queue q9. Send it", choice))
    with pytest.raises(kind) as caught:
        read(envelope.write_answer(told))
    assert type(caught.value) is kind
    assert caught.value.messages == (Message("box-a: there is no queue q9. Send it", choice),)


@pytest.mark.parametrize(
    "error",
    [
        b'{"kind": "Exception", "text": "x"}',
        b'{"kind": "Sequence", "text": "x"}',
        b'{"kind": "annotations", "text": "x"}',
        b'{"kind": "__doc__", "text": "x"}',
        b'{"kind": 3, "text": "x"}',
        b'{"text": "x"}',
        b'{"text": "x", "command": "push"}',
        b'{"text": "x", "command": {"verb": 3}}',
        b'"x"',
        b"null",
    ],
)
def test_an_error_that_is_not_as_expected_is_still_an_error(error: bytes) -> None:
    with pytest.raises(BoxcarError, match=r"box-a: (x|None)") as caught:
        read(b'BOXCAR-ANSWER {"error": ' + error + b"}\n")
    assert type(caught.value) is BoxcarError


# --- versions


def test_a_question_and_an_answer_say_their_version() -> None:
    assert json.loads(envelope.write_question(QUESTION, RUN))["wire"] == envelope.VERSION
    spelled = envelope.write_answer({"left": 2})
    assert json.loads(spelled.removeprefix(envelope.MARK)) == {"wire": envelope.VERSION, "left": 2}


@pytest.mark.parametrize("answer", [{"left": 2}, {"error": {"kind": "InputError", "text": "x"}}])
def test_an_answer_of_a_newer_box_says_to_update_here(answer: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        read(line({"wire": 2} | answer))
    assert str(caught.value) == (
        "box-a: its answer to 'deliver' is of version 2 of the wire, from a newer Boxcar than this "
        "one, which speaks version 1. Update Boxcar on this machine, and type the same command "
        "again"
    )


@pytest.mark.parametrize("head", [{}, {"wire": 1}])
def test_an_answer_of_an_older_box_says_how_it_gets_this_one(
    monkeypatch: pytest.MonkeyPatch, head: dict[str, int]
) -> None:
    monkeypatch.setattr(envelope, "VERSION", 2)
    with pytest.raises(InputError, match=r"of version 1 .*Remove the agent's file.*onbox-\*\.pyz"):
        read(line(head | {"left": 2}))


@pytest.mark.parametrize("version", ["1", None, [1], 0, -1, 1.5, {}])
def test_a_version_that_is_none_is_told(version: object) -> None:
    with pytest.raises(InputError, match="box-a: its answer to 'deliver' is of version"):
        read(line({"wire": version, "left": 2}))


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_a_question_of_another_version_is_told_on_the_box(version: object) -> None:
    document = json.loads(envelope.write_question(QUESTION, RUN)) | {"wire": version}
    with pytest.raises(InputError, match=r"the question 'deliver' is of version .*onbox-\*\.pyz"):
        envelope.read_question(json.dumps(document).encode())


def test_a_question_that_names_no_version_is_of_the_first() -> None:
    document = json.loads(envelope.write_question(QUESTION, RUN))
    del document["wire"]
    assert envelope.read_question(json.dumps(document).encode()) == (QUESTION, RUN)


@pytest.mark.parametrize("name", ["dance", "", 3, None, ["report"], {}])
def test_a_question_that_the_agent_does_not_know_is_told_with_what_it_knows(name: object) -> None:
    document = json.loads(envelope.write_question(QUESTION, RUN)) | {"ask": name}
    with pytest.raises(InputError) as caught:
        envelope.read_question(json.dumps(document).encode())
    told = str(caught.value)
    assert told.startswith(f"the agent here has no answer to {name!r}, only to report, release, ")
    assert "onbox-*.pyz" in told
