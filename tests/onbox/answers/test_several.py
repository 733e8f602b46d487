"""Several questions in one round trip: done in their order, up to the first that goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec
from boxcar.shared.files.control import RUN, STOP, Control
from boxcar.shared.wire import box_asks, envelope, run_asks
from boxcar.shared.wire.envelope import Replies
from boxcar.shared.wire.question import Question, RunOnBox
from onbox.answers import door

AT = "2026-11-22T01:00:00.000Z"


@pytest.fixture
def run(tmp_path: Path) -> RunOnBox:
    made = RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path / "data"))
    made.tier.root.mkdir(parents=True)
    return made


def asked(run: RunOnBox, *questions: Question) -> Replies:
    several = envelope.several(questions)
    document = door.answer(envelope.write_question(several, run))
    answers = envelope.read_answer(several, "box-a", 0, envelope.write_answer(document), "")
    return Replies("box-a", questions, answers)


def test_each_is_answered_as_if_it_had_come_alone(run: RunOnBox) -> None:
    append = run_asks.Append("q1", None, b"c.json one\n")
    write = run_asks.WriteControl("q1", Control(RUN, AT))
    replies = asked(run, append, write)
    assert run.tier.queue("q1").read_bytes() == b"c.json one\n"
    assert replies.to(append).size_bytes == 11
    assert replies.to(write) == run_asks.ControlWritten()


def test_what_follows_an_error_is_not_done_and_says_why(run: RunOnBox) -> None:
    append = run_asks.Append("q1", None, b"c.json one\n")
    point = run_asks.PointTo("ab" * 32)
    stop = run_asks.WriteControl("q1", Control(STOP, AT))
    replies = asked(run, append, point, stop)
    assert replies.to(append).size_bytes == 11
    for question in (point, stop):
        with pytest.raises(InputError, match=r"box-a: .*abab: is not there") as caught:
            replies.to(question)
        assert caught.value.messages[0].command is not None
    assert not run.tier.control("q1").exists()


def test_the_same_twice_is_done_once(run: RunOnBox) -> None:
    questions = (
        run_asks.Append("q1", None, b"c.json one\n"),
        box_asks.KeepCredentials(f"{run.data_dir}/c.json", {"env": {"A": "s3cret"}}),
    )
    first, again = asked(run, *questions), asked(run, *questions)
    for question in questions:
        assert codec.encode(first.to(question)) == codec.encode(again.to(question))
    assert run.tier.queue("q1").read_bytes() == b"c.json one\n"


def test_a_secret_in_a_part_is_in_no_text_of_the_question(run: RunOnBox) -> None:
    secret = box_asks.KeepCredentials(f"{run.durable_dir}/c.json", {"env": {"A": "s3cret"}})
    assert "s3cret" not in repr(envelope.several((secret,)))
    with pytest.raises(InputError) as caught:
        asked(run, secret).to(secret)
    assert "s3cret" not in str(caught.value)


def test_a_part_without_an_answer_is_damage(run: RunOnBox) -> None:
    find = run_asks.FindRelease("ab" * 32)
    with pytest.raises(DamagedError, match="box-a: gave no answer to 'release'"):
        Replies("box-a", (find,), box_asks.Answers(())).to(find)
