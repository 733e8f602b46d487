from __future__ import annotations

import json

import pytest

from boxcar.laptop.boxes import answer
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError, TemporaryError
from boxcar.shared.message import Command, Message
from onbox.answers import door as onbox_answer


def test_both_sides_mark_the_line_alike() -> None:
    assert answer.MARK == onbox_answer.MARK


@pytest.mark.parametrize(
    "out",
    [
        b'BOXCAR-ANSWER {"left": 2}\n',
        b'Welcome to the box!\nBOXCAR-ANSWER {"left": 2}\nlogout\n',
        b'BOXCAR-ANSWER {"left": 1}\nBOXCAR-ANSWER {"left": 2}',
        b'\xff\xfe\x00\n\nBOXCAR-ANSWER {"left": 2}\r\n',
    ],
)
def test_the_answer_is_found_among_whatever_else_is_printed(out: bytes) -> None:
    assert answer.read("box-a", 0, out, "") == {"left": 2}


@pytest.mark.parametrize(
    "out", [b"", b"hello\n", b" BOXCAR-ANSWER {}\n", b'BOXCAR-ANSWER {"lef', b"BOXCAR-ANSWER 1\n"]
)
def test_a_box_that_gave_no_answer_may_give_one_later(out: bytes) -> None:
    with pytest.raises(TemporaryError, match="box-a"):
        answer.read("box-a", 1, out, "")


def test_what_the_box_said_instead_is_told_from_its_end() -> None:
    with pytest.raises(TemporaryError) as caught:
        answer.read("box-a", 139, b"", "x" * 5000 + "\nSegmentation fault\n")
    text = str(caught.value)
    assert "code 139" in text and text.endswith("Segmentation fault")
    assert len(text) < 2000
    with pytest.raises(TemporaryError, match="it printed nothing"):
        answer.read("box-a", 255, b"", " \n")


@pytest.mark.parametrize("kind", [InputError, TemporaryError, NoRoomError, DamagedError])
def test_what_went_wrong_on_the_box_is_raised_here_as_it_was_there(kind: type) -> None:
    choice = Command("push", note="it appends", or_else=Command("plan", ("--json",)))
    told = onbox_answer._error(kind, Message("there is no queue q9. Send it", choice))
    line = answer.MARK + json.dumps(told).encode()
    with pytest.raises(kind) as caught:
        answer.read("box-a", 0, line, "")
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
def test_an_error_of_another_version_is_still_an_error(error: bytes) -> None:
    with pytest.raises(BoxcarError, match=r"box-a: (x|None)") as caught:
        answer.read("box-a", 0, b'BOXCAR-ANSWER {"error": ' + error + b"}\n", "")
    assert type(caught.value) is BoxcarError
