"""The table fits to what it calls, and both programs are made from it."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT_S

from boxcar.door import run_verb, verb_table
from boxcar.door.verb_table import EVERYDAY, GROUPS, VERBS

ROOT = Path(__file__).parents[2]
GIVEN = {
    verb_table.SECRET: "secret",
    verb_table.WHERE: "where",
    **dict.fromkeys((verb_table.FOLDER, verb_table.JOB_FOLDER), "root"),
    **dict.fromkeys((verb_table.PROJECT, verb_table.DRAFT, verb_table.LAUNCHED), "project"),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_a_verbs_function_takes_what_it_is_given_and_each_of_its_flags(verb) -> None:
    module, _, name = verb.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    given = [GIVEN[verb.given]] if verb.given in GIVEN else []
    required = [*given, *(flag.parameter for flag in verb.placed(verb_table.FIRST))]
    flags = [flag.parameter for flag in verb.flags if flag not in run_verb._OF_THE_DOOR]
    if verb.given == verb_table.WHERE:
        required = given  # the rest is asked where it is used
    inspect.signature(function).bind(**dict.fromkeys({*required, *flags}))
    inspect.signature(function).bind(**dict.fromkeys(required))


def test_every_group_is_known_and_every_everyday_verb_is_there() -> None:
    assert {verb.group for verb in VERBS.values()} == set(GROUPS)
    assert set(EVERYDAY) <= set(VERBS) and len(EVERYDAY) == 8


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        (verb_table.COUNT, "12", 12),
        (verb_table.FRACTION, "1e-3", 0.001),
        (verb_table.TIME, "30m", 1800.0),
        (verb_table.TIME, "90", 90.0),
        (verb_table.EXIT_CODE, "-9", -9),
        (verb_table.PORT, "8765", 8765),
        (verb_table.OFF, True, False),
        (verb_table.MANY, ["a", "b"], ("a", "b")),
    ],
)
def test_what_was_typed_is_read_by_its_kind(kind: str, text: str, wanted: object) -> None:
    assert run_verb._READERS[kind](text, "--x") == wanted


# As in a clone where only Invoke was installed.
BARE = """
import sys
sys.modules["pydantic"] = sys.modules["rich"] = sys.modules["yaml"] = None
sys.argv = ["invoke", *sys.argv[1:]]
from invoke import program, main
main.program.run()
"""


def bare(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BARE, *words], cwd=ROOT, env=os.environ | {"LC_ALL": "C"} | env,
        capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip


def test_with_invoke_alone_a_verb_is_one_sentence_that_says_what_to_type() -> None:
    done = bare("launch", "--profile", "autodl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "pydantic is missing: this Python has Invoke but not Boxcar's libraries. Type: python3 "
        "bootstrap.py && .venv/bin/invoke launch --profile autodl\n"
    )
    in_json = json.loads(bare("status", "--json").stdout)
    assert (in_json["verb"], in_json["exit_code"]) == ("status", 2)
    assert "执行：" in bare("status", LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1").stderr


def test_invokes_list_ends_quietly_where_nobody_reads_it() -> None:
    line = '(sleep 0.1; "$0" -m invoke --list) | true; exit ${PIPESTATUS[0]}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("verb", "values", "typed"),
    [
        ("pull", {"cell": ["a", "b c"]}, "pull --cell a --cell 'b c' --all"),
        (
            "report",
            {"incomplete": True, "metric": ["psnr"]},
            "report --metric psnr --incomplete --all",
        ),
        ("verify", {"job": "other.yaml", "json": True}, "verify --json --all"),
        ("down", {"approve": "c0ffee", "abandon": ["a"]}, "down --all"),
    ],
)
def test_the_command_that_shows_all_is_the_one_that_was_typed_and_approves_nothing(
    verb, values, typed
) -> None:
    assert run_verb._with_all(VERBS[verb], values).typed("boxcar") == f"boxcar {typed}"
