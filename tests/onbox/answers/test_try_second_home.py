from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from boxcar.laptop.common import home
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import try_second_home

RUN = RunOnBox("tiny", "/tier", "/data")


@pytest.fixture
def question(tmp_path: Path) -> box_asks.TrySecondHome:
    program = home.training_program("second_home")
    url = f"file://{tmp_path}/second"
    return box_asks.TrySecondHome(url, sys.executable, ":", program, {}, {"KEY": "s3cret"})


def test_a_place_that_takes_a_file_and_gives_it_back_has_no_problem(
    question: box_asks.TrySecondHome, tmp_path: Path
) -> None:
    assert try_second_home.answer(question, RUN) == box_asks.SecondHomeTried()
    assert list((tmp_path / "second").iterdir()) == []


def test_what_is_wrong_is_a_sentence_without_a_secret(
    question: box_asks.TrySecondHome, tmp_path: Path
) -> None:
    (tmp_path / "second").write_text("a file")
    problem = try_second_home.answer(question, RUN).problem
    assert problem and str(tmp_path / "second") in problem
    leaky = "import os; raise SystemExit('denied to ' + os.environ['KEY'])"
    assert "denied to …" in str(
        try_second_home.answer(replace(question, program=leaky), RUN).problem
    )
    assert "s3cret" not in repr(question)


def test_the_hook_runs_before_it_and_leaves_it_its_question(
    question: box_asks.TrySecondHome, tmp_path: Path
) -> None:
    hook = f"export PLACE={tmp_path}; cat; echo noise"
    program = "import json, os, sys; assert os.environ['PLACE']; json.load(sys.stdin)\n"
    asked = replace(question, hook=hook, program=program + "print('{\"done\": {}}')")
    assert try_second_home.answer(asked, RUN) == box_asks.SecondHomeTried()
