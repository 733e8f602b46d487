from __future__ import annotations

import json

import pytest

from boxcar.laptop.common import documents, show
from boxcar.laptop.tryout.outcome import Outcome
from boxcar.shared.errors import Command, Message


@pytest.fixture(autouse=True)
def begun():
    show.begin()
    yield
    show.begin()


def test_the_first_key_of_a_document_says_which_and_no_field_takes_its_place():
    found = documents.of_verb("check-profiles", {"stale": [], "format": "mine"})
    assert next(iter(found.items())) == ("format", "boxcar.check-profiles/1")
    assert found["stale"] == []


def test_what_verbs_call_the_same_has_one_name():
    tries = [Outcome("a", "failed", "exit 1"), Outcome("b", "passed")]
    a, b = documents.of_verb("smoke", {"run": "r", "cells": tries})["cells"]
    assert (a["cell"], a["state"], a["because"]) == ("a", "failed", "exit 1")
    assert b["because"] is None


def test_each_line_of_several_is_one_document(capsys):
    show.json_line("made-up", {"id": "1", "data": {"a": "x\ny"}})
    show.json_line("made-up", {"id": "2", "data": {}})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["format"] for line in lines] == ["boxcar.made-up/1"] * 2


def test_an_error_is_a_document_with_the_command_that_helps(capsys):
    show.json_error("push", 2, [Message("queue_1 was edited", Command("plan")), Message("and b")])
    assert json.loads(capsys.readouterr().out) == {
        "format": "boxcar.error/1",
        "verb": "push",
        "exit_code": 2,
        "messages": [
            {"text": "queue_1 was edited", "command": "invoke plan"},
            {"text": "and b", "command": None},
        ],
    }


def test_behind_a_verbs_own_document_comes_no_second_one(capsys):
    show.json_document("made-up", {"problems": ["box-a does not answer"]})
    show.json_error("push", 1, [Message("box-a does not answer")])
    assert json.loads(capsys.readouterr().out)["format"] == "boxcar.made-up/1"


def test_behind_lines_an_error_is_the_last_line(capsys):
    show.json_line("made-up", {"run": "r"})
    show.json_error("watch", 130, [Message("interrupted")])
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["format"], last["exit_code"]) == ("boxcar.error/1", 130)
