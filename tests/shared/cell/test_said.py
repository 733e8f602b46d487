"""What a cell is told: its command's words, its resume path, the links of its code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plans import make_plan

from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.cell.said import Places, SaidCell
from boxcar.shared.files.plan import IN_OUT, Box, Cell, Rule

PLACES = Places("/box/out", "/box/code", "/box/out/last.pt")
CKPT = Places("/box/out", "/box/code", "/box/out/last.pt", has_checkpoint=True)


def line(*overrides: str, cfg: str = "conf/a.yaml", own: Own = NOTHING_OWN) -> CellLine:
    return CellLine(0, 1, "a", cfg, "recon", 3, own, overrides)


def say(
    *overrides: str, places: Places = PLACES, added: tuple[str, ...] = (), **plan: Any
) -> SaidCell:
    return said.say_cell(make_plan(**plan), line(*overrides), places, added)


# --- words


def test_every_placeholder_of_a_command_is_filled():
    command = (
        "t.py",
        "{cfg}",
        "{task}",
        "{epochs}",
        "{name}",
        "{run}",
        "{out}/x",
        "-r={resume}",
        "{code}",
    )
    assert say(command=command).words == (
        *("t.py", "conf/a.yaml", "recon", "3", "a", "digits", "/box/out/x"),
        *("-r=/box/out/last.pt", "/box/code"),
    )


def test_the_jobs_epochs_count_where_a_line_gives_none():
    bare = CellLine(0, 1, "a", "a.yaml", "t", None)
    assert said.epochs(make_plan(epochs=20), bare) == 20
    assert said.epochs(make_plan(epochs=20), line()) == 3


def test_overrides_come_where_more_stands_and_else_at_the_end():
    named = say("lr=1", "seed=2", command=("t.py", "{more}", "--out", "{out}"))
    assert named.words == ("t.py", "lr=1", "seed=2", "--out", "/box/out")
    assert say("lr=1", command=("t.py", "{cfg}")).words == ("t.py", "conf/a.yaml", "lr=1")


def test_more_becomes_no_word_at_all_without_overrides():
    assert say(command=("t.py", "{more}", "x")).words == ("t.py", "x")


LITERAL = ["{cfg}", "{{out}}", "{more}", "{a:1}", "{", "}", "$HOME", "--", "", "{resume}"]


@pytest.mark.parametrize("word", LITERAL)
@pytest.mark.parametrize("command", [("t.py",), ("t.py", "{more}", "x")])
@pytest.mark.parametrize("workdir", ["code", "out"])
def test_overrides_are_literal(word, command, workdir):
    assert say(word, command=command, workdir=workdir).words[1] == word


def test_resume_args_are_added_only_with_a_checkpoint():
    plan: dict[str, Any] = {"command": ("t.py",), "resume_args": ("--resume", "{resume}")}
    assert say("lr=1", **plan).words == ("t.py", "lr=1")
    assert say("lr=1", places=CKPT, **plan).words == (
        "t.py",
        "lr=1",
        "--resume",
        "/box/out/last.pt",
    )


def test_the_order_is_command_overrides_resume_args_added_words():
    words = say(
        *("lr=1", "{x}"),
        places=CKPT,
        added=("--limit", "{task}"),
        command=("t.py", "{more}", "last"),
        resume_args=("-r", "{resume}"),
    ).words
    assert words == ("t.py", "lr=1", "{x}", "last", "-r", "/box/out/last.pt", "--limit", "recon")


def test_a_cell_of_a_plan_says_what_its_line_says():
    of_plan = Cell("a", "conf/a.yaml", "recon", 3, "queue_1", 0, None, NOTHING_OWN, ("lr=1",))
    plan = make_plan(command=("t.py", "{cfg}", "{name}"))
    assert said.say_cell(plan, of_plan, PLACES) == said.say_cell(plan, line("lr=1"), PLACES)


# --- environment


def test_exactly_seven_placeholders_are_filled_in_the_jobs_env():
    seven = "{cfg} {task} {epochs} {name} {run} {out} {resume}"
    env = say(job_env={"A": seven, "B": "{code} {after} {more} {x} {} {"}).env
    assert env["A"] == "conf/a.yaml recon 3 a digits /box/out /box/out/last.pt"
    assert env["B"] == "{code} {after} {more} {x} {} {"


def test_a_doubled_brace_is_the_placeholders_own_text_and_others_stay():
    env = say(job_env={"A": "{{name}}", "B": "{{x}} }} {{", "C": "{name}}"}).env
    assert env == {"A": "{name}", "B": "{{x}} }} {{", "C": "a}"}


def test_json_in_env_is_untouched():
    text = json.dumps({"a": {"b": [1, {}]}, "name": "x", "zero": {"stage": 2}})
    assert say(job_env={"DS": text}).env["DS"] == text


def test_the_values_of_profile_and_line_are_never_filled():
    own = Own(env={"L": "{name}"})
    plan = make_plan(env={"P": "{name}"}, job_env={"J": "{name}"})
    found = said.say_cell(plan, line(own=own), PLACES)
    assert found.env == {"P": "{name}", "J": "a", "L": "{name}"}


def test_a_variable_of_the_line_comes_over_rule_job_and_profile():
    plan = make_plan(
        env=dict.fromkeys("ABCD", "profile"),
        job_env=dict.fromkeys("BCD", "job"),
        rules=(Rule("a", env=dict.fromkeys("CD", "rule {task}")),),
    )
    found = said.say_cell(plan, line(own=Own(env={"D": "line"})), PLACES)
    assert found.env == {"A": "profile", "B": "job", "C": "rule recon", "D": "line"}


def test_relative_parts_of_the_python_path_are_of_the_code_folder():
    assert say(job_env={"PYTHONPATH": "src:/abs::."}).env["PYTHONPATH"] == (
        "/box/code/src:/abs:/box/code"
    )
    assert "PYTHONPATH" not in say().env


# --- where and by what


def test_in_the_code_folder_nothing_is_made_absolute():
    found = say(command=("train.py", "{cfg}"))
    assert found.words == ("train.py", "conf/a.yaml")
    assert (found.workdir, found.python_path) == ("/box/code", ())


def test_in_out_script_and_config_are_absolute_and_the_code_is_found():
    found = say(
        "data=x.py", command=("src/train.py", "{cfg}", "data/tiny", "other.py"), workdir=IN_OUT
    )
    assert found.words == (
        *("/box/code/src/train.py", "/box/code/conf/a.yaml", "data/tiny", "other.py", "data=x.py"),
    )
    assert (found.workdir, found.python_path) == ("/box/out", ("/box/code",))


def test_in_out_a_module_stays_as_it_is():
    assert say(command=("-m", "pkg.train", "{cfg}"), workdir=IN_OUT).words[:2] == (
        "-m",
        "pkg.train",
    )


def test_an_absolute_script_stays_and_braces_in_the_code_folder_are_no_placeholders():
    assert say(command=("/opt/t.py",), workdir=IN_OUT).words == ("/opt/t.py",)
    odd = Places("/out", "/my {code}/}x", "")
    assert say(command=("t.py", "{cfg}"), workdir=IN_OUT, places=odd).words == (
        *("/my {code}/}x/t.py", "/my {code}/}x/conf/a.yaml"),
    )


def test_without_a_config_there_is_nothing_to_make_absolute():
    found = said.say_cell(make_plan(job_env={"C": "{cfg}"}, workdir=IN_OUT), line(cfg="-"), PLACES)
    assert found.env == {"C": "-"}


def test_launcher_ranks_and_time_are_the_cells():
    plan = make_plan(rules=(Rule("a", launcher="python", nproc=2, time_s=60),))
    found = said.say_cell(plan, line(own=Own(nproc=4)), PLACES)
    assert (found.launcher, found.nproc, found.time_s) == ("python", 4, 60)


def test_the_folders_of_cells_before_have_placeholders():
    plan, own = make_plan(command=("t.py", "{after:y}", "{after}")), Own(after=("x", "y"))
    places = Places("/o", "/c", after={"x": "/t/x", "y": "/t/y"})
    assert said.say_cell(plan, line(own=own), places).words[1:] == ("/t/y", "/t/x")
    assert said.say_cell(plan, line(own=own), PLACES).words[1:] == ("{after:y}", "{after:x}")


def test_a_plain_resume_has_a_place_before_anything_is_there():
    assert said.resume_place("/out", "ckpt/last.pt") == "/out/ckpt/last.pt"
    assert said.resume_place("/out", "ckpt/*.pt") == said.resume_place("/out", None) == ""


@pytest.mark.parametrize("word", ["train.py", "a/b.py"])
def test_a_script_is_a_file_that_has_to_be_there(word):
    assert said.is_script(word)


@pytest.mark.parametrize("word", ["-m", "--x=a.py", "tasks/{task}.py", "train", "a.pyc"])
def test_other_words_are_no_script(word):
    assert not said.is_script(word)


def test_modules_are_found_beside_the_script_in_the_code_and_where_the_job_says():
    plan = make_plan(command=("src/train.py", "{out}"), job_env={"PYTHONPATH": "lib:/opt/more"})
    assert said.import_paths(plan, "a", "/c") == ("/c/src", "/c", "/c/lib", "/opt/more")
    by_module = make_plan(command=("-m", "pkg.train"))
    assert said.import_paths(by_module, "a", "/c") == ("/c",)


PLAN = make_plan()
LINE = CellLine(0, 1, "a", "a.yaml", "t", 3, Own(env={"A": "1"}), ("lr=1", "seed=2"))
SHA = "a" * 64


def of(**changes: Any) -> str:
    return said.saying_of(PLAN, replace(LINE, **changes), SHA)


@pytest.mark.parametrize(
    "changes",
    [
        {"cfg": "b.yaml"},
        {"task": "u"},
        {"epochs": 4},
        {"overrides": ("lr=2", "seed=2")},
        {"overrides": ("seed=2", "lr=1")},
        {"overrides": ("lr=1 seed=2",)},
        {"overrides": ()},
        {"own": Own(env={"A": "2"})},
        {"own": Own()},
    ],
)
def test_another_line_says_something_else(changes):
    assert of(**changes) != of()


@pytest.mark.parametrize(
    "changes",
    [
        {"index": 7, "number": 9},
        {"own": Own(env={"A": "1"}, nproc=8)},
        {"own": Own(env={"A": "1"}, time_s=60)},
        {"own": Own(env={"A": "1"}, after=("x",))},
    ],
)
def test_place_ranks_time_and_order_are_not_what_it_says(changes):
    assert of(**changes) == of()


def test_the_order_of_variables_does_not_count():
    assert of(own=Own(env={"A": "1", "B": "2"})) == of(own=Own(env={"B": "2", "A": "1"}))


def test_the_configs_bytes_count():
    assert said.saying_of(PLAN, LINE, "b" * 64) != of() != said.saying_of(PLAN, LINE, None)


def test_box_command_and_code_do_not_count():
    other = make_plan(boxes=(Box("z", "/z", "/z"),), command=("other.py",), env={"X": "1"})
    assert said.saying_of(other, LINE, SHA) == of()


def test_epochs_by_the_jobs_default_are_those_epochs():
    bare = replace(LINE, epochs=None)
    assert said.saying_of(make_plan(epochs=3), bare, SHA) == of()
    assert said.saying_of(make_plan(epochs=4), bare, SHA) != of()


def test_what_is_said_of_a_cell_of_a_plan_is_what_is_said_of_its_line():
    cell = Cell("a", "a.yaml", "t", 3, "queue_1", 0, 8, LINE.own, LINE.overrides)
    assert said.saying_of(PLAN, cell, SHA) == of()


def test_what_is_not_known_differs_from_nothing():
    assert said.sayings_differ("a", "b")
    assert not any(
        said.sayings_differ(*pair) for pair in (("a", "a"), ("a", None), (None, "b"), (None, None))
    )


# --- links to folders of the code


def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    out, code, aside = tmp_path / "out", tmp_path / "code", tmp_path / "aside"
    out.mkdir()
    (code / "sets" / "cifar").mkdir(parents=True)
    return out, code, aside


def test_each_name_leads_to_its_folder_of_the_code(tmp_path):
    out, code, aside = folders(tmp_path)
    assert said.place(out, code, {"data": "sets/cifar", "sets": "sets"}, aside) == []
    assert (out / "data").readlink() == code / "sets" / "cifar"
    assert (out / "sets" / "cifar").is_dir() and not aside.exists()


def test_of_another_release_they_lead_to_the_code_of_this_attempt(tmp_path):
    out, code, aside = folders(tmp_path)
    (out / "data").symlink_to(tmp_path / "gone")
    assert said.place(out, code, {"data": "sets"}, aside) == []
    assert (out / "data").readlink() == code / "sets"


def test_what_an_attempt_left_in_the_place_of_one_is_kept(tmp_path):
    out, code, aside = folders(tmp_path)
    (out / "data").mkdir()
    (out / "data" / "own.txt").write_text("mine")
    [moved] = said.place(out, code, {"data": "sets"}, aside)
    assert moved.parent == aside and (moved / "own.txt").read_text() == "mine"
    assert (out / "data").readlink() == code / "sets"


def test_a_file_in_the_place_of_one_is_kept_too(tmp_path):
    out, code, aside = folders(tmp_path)
    (out / "data").write_text("mine")
    [moved] = said.place(out, code, {"data": "sets"}, aside)
    assert moved.parent == aside and moved.read_text() == "mine"
    assert (out / "data").readlink() == code / "sets"
