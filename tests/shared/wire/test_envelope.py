from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    Message,
    NoRoomError,
    TemporaryError,
)
from boxcar.shared.files import codec
from boxcar.shared.wire import envelope, news_asks, question, webhook_secret
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
def test_the_answer_is_found_among_whatever_else_is_printed(out):
    assert read(out) == news_asks.Delivered(2)


@pytest.mark.parametrize(
    "out", [b"", b"hello\n", b" BOXCAR-ANSWER {}\n", b'BOXCAR-ANSWER {"lef', b"BOXCAR-ANSWER 1\n"]
)
def test_a_box_that_gave_no_answer_may_give_one_later(out):
    with pytest.raises(TemporaryError, match="box-a"):
        read(out, code=1)


def test_what_the_box_said_instead_is_told_from_its_end():
    with pytest.raises(TemporaryError) as caught:
        read(b"", 139, "x" * 5000 + "\nSegmentation fault\n")
    text = str(caught.value)
    assert "code 139" in text and text.endswith("Segmentation fault")
    assert len(text) < 2000
    with pytest.raises(TemporaryError, match="it printed nothing"):
        read(b"", 255, " \n")


@pytest.mark.parametrize("kind", [InputError, TemporaryError, NoRoomError, DamagedError])
def test_what_went_wrong_on_the_box_is_raised_here_as_it_was_there(kind):
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
def test_an_error_that_is_not_as_expected_is_still_an_error(error):
    with pytest.raises(BoxcarError, match=r"box-a: (x|None)") as caught:
        read(b'BOXCAR-ANSWER {"error": ' + error + b"}\n")
    assert type(caught.value) is BoxcarError


# --- versions


def test_a_question_and_an_answer_say_their_version():
    assert json.loads(envelope.write_question(QUESTION, RUN))["wire"] == envelope.VERSION
    spelled = envelope.write_answer({"left": 2})
    assert json.loads(spelled.removeprefix(envelope.MARK)) == {"wire": envelope.VERSION, "left": 2}


@pytest.mark.parametrize("answer", [{"left": 2}, {"error": {"kind": "InputError", "text": "x"}}])
def test_an_answer_of_a_newer_box_says_to_update_here(answer):
    with pytest.raises(InputError) as caught:
        read(line({"wire": 2} | answer))
    assert str(caught.value) == (
        "box-a: its answer to 'deliver' is of version 2 of the wire, from a newer Boxcar than this "
        "one, which speaks version 1. Update Boxcar on this machine, and type the same command "
        "again"
    )


@pytest.mark.parametrize("head", [{}, {"wire": 1}])
def test_an_answer_of_an_older_box_says_how_it_gets_this_one(monkeypatch, head):
    monkeypatch.setattr(envelope, "VERSION", 2)
    with pytest.raises(InputError, match=r"of version 1 .*Remove the agent's file.*onbox-\*\.pyz"):
        read(line(head | {"left": 2}))


@pytest.mark.parametrize("version", ["1", None, [1], 0, -1, 1.5, {}])
def test_a_version_that_is_none_is_told(version):
    with pytest.raises(InputError, match="box-a: its answer to 'deliver' is of version"):
        read(line({"wire": version, "left": 2}))


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_a_question_of_another_version_is_told_on_the_box(version):
    document = json.loads(envelope.write_question(QUESTION, RUN)) | {"wire": version}
    with pytest.raises(InputError, match=r"the question 'deliver' is of version .*onbox-\*\.pyz"):
        envelope.read_question(json.dumps(document).encode())


def test_a_question_that_names_no_version_is_of_the_first():
    document = json.loads(envelope.write_question(QUESTION, RUN))
    del document["wire"]
    assert envelope.read_question(json.dumps(document).encode()) == (QUESTION, RUN)


@pytest.mark.parametrize("name", ["dance", "", 3, None, ["report"], {}])
def test_a_question_that_the_agent_does_not_know_is_told_with_what_it_knows(name):
    document = json.loads(envelope.write_question(QUESTION, RUN)) | {"ask": name}
    with pytest.raises(InputError) as caught:
        envelope.read_question(json.dumps(document).encode())
    told = str(caught.value)
    assert told.startswith(f"the agent here has no answer to {name!r}, only to report, wait, ")
    assert "onbox-*.pyz" in told


# --- fields


SHA = "0a" * 32
HOSTILE = ["", ".", "..", "../x", "/x", "x/y", "x\0", "-x", ".x", "$(touch x)", "x\n", "\ud800"]
WRONG: list[Any] = [*HOSTILE, 1, None, [], {}, True]


@dataclass(frozen=True)
class Fields:
    """One of each kind."""

    run: question.RunName = "r"
    queue: question.QueueName = "q"
    box: question.BoxName = "b"
    cell: question.CellName = "c"
    digest: question.Digest = SHA
    path: question.BoxPath = "/x"
    count: question.Count = 0
    at: question.Time = "2026-11-22T00:00:00.000Z"
    token: question.Token = "ab" * 8
    has: question.Prefix = (0, SHA)


def read_field(name: str, value: Any) -> Any:
    return getattr(codec.decode(Fields, {name: value}, "here"), name)


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("name", ["run", "queue", "box", "cell", "digest", "at", "token"])
def test_a_name_that_could_lead_elsewhere_is_refused_by_its_field(name, value):
    with pytest.raises(DamagedError, match=f"^here: {name}: "):
        read_field(name, value)


def test_a_cell_is_named_as_a_queue_names_it():
    assert read_field("cell", "größer+2") == "größer+2"
    for name in ("ends.", "ü" * 101, "a" * 101):
        with pytest.raises(DamagedError, match="here: cell: expected the name of a cell"):
            read_field("cell", name)


@pytest.mark.parametrize("value", ["", "x", "./x", "~root/x", "~x", "/x\0", 3, None])
def test_a_path_of_a_box_is_absolute_or_below_its_home(value):
    assert (read_field("path", "/x/y"), read_field("path", "~/x")) == ("/x/y", "~/x")
    with pytest.raises(DamagedError, match=r"^here: path: "):
        read_field("path", value)


@pytest.mark.parametrize("value", [True, -1, 1.0, "1", None])
def test_a_count_is_a_whole_number_from_0(value):
    with pytest.raises(DamagedError, match=r"^here: count: expected"):
        read_field("count", value)


@pytest.mark.parametrize("at", ["yesterday", "T Z", "2026-13-99T00:00:00Z", "2026-01-01"])
def test_a_time_is_one_that_can_be_reckoned_with(at):
    with pytest.raises(DamagedError, match=r"^here: at: "):
        read_field("at", at)


@pytest.mark.parametrize("value", [[], [1], [-1, SHA], ["1", SHA], [1, "x"], [1, SHA, 1], None, {}])
def test_what_the_laptop_has_is_a_size_and_a_digest(value):
    assert read_field("has", [7, SHA]) == (7, SHA)
    with pytest.raises(DamagedError, match=r"^here: has(\[\d\])?: "):
        read_field("has", value)


def test_one_of_several_words_is_told_with_all_of_them():
    rule = question.one_of("tmux", "setsid")
    rule("tmux")
    with pytest.raises(ValueError, match="expected tmux or setsid, found 'nohup'"):
        rule("nohup")


# --- the secret of a webhook


@given(st.binary(min_size=1))
def test_a_secret_gives_its_key_with_or_without_padding(key):
    text = "whsec_" + base64.b64encode(key).decode()
    assert webhook_secret.key(text) == webhook_secret.key(text.rstrip("=")) == key
    assert webhook_secret.is_secret(text)


NONE = [
    "",
    "whsec_",
    "whsec_==",
    "MfKQ9r8GKYqr",
    "whsec_a",
    "whsec_MfKQ 9r8G",
    "whsec_größe",
    "WHSEC_MfKQ",
]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_secret_is_refused_without_repeating_it(text):
    assert not webhook_secret.is_secret(text)
    with pytest.raises(ValueError, match=r"^expected whsec_ and base64$") as raised:
        webhook_secret.key(text)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize("value", [None, 5, b"whsec_MfKQ", ["whsec_MfKQ"]])
def test_only_a_text_is_a_secret(value):
    assert not webhook_secret.is_secret(value)
