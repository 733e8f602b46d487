"""A line of a queue: its grammar, how it is spelled, and what an event says of it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from boxcar.shared.cell import cell_line, cell_name
from boxcar.shared.cell.cell_line import CellLine, parse
from boxcar.shared.cell.cell_name import nfc
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.journal_chain import Event


def line(text: str) -> CellLine:
    return parse(text.encode(), 0, 1)


def refusal(text: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        line(text)
    return str(caught.value)


# --- two or three fields mean what they always meant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.yaml t", CellLine(0, 1, "a", "a.yaml", "t", None)),
        ("a.yaml t 60", CellLine(0, 1, "a", "a.yaml", "t", 60)),
        ("'my a/b.yaml' 'two words' 060", CellLine(0, 1, "b", "my a/b.yaml", "two words", 60)),
        ("a.yaml lr=1", CellLine(0, 1, "a", "a.yaml", "lr=1", None)),
        ("a.yaml name=x 5", CellLine(0, 1, "a", "a.yaml", "name=x", 5)),
    ],
)
def test_a_line_of_two_or_three_fields_means_what_it_meant(text, expected):
    assert line(text) == expected


@pytest.mark.parametrize("third", ["6O", "0", "1.0", "1e3", "+1", "~lr", "''", "x", "١", "9" * 10])
def test_a_third_field_that_is_no_epochs_is_still_refused(third):
    assert "epochs must be a whole number, 1 or more" in refusal(f"a.yaml t {third}")
    assert "epochs must be a whole number, 1 or more" in refusal(f"a.yaml t {third} lr=1")


def test_a_path_with_a_blank_is_told_to_stand_in_quotes():
    assert refusal("configs/my cfg.yaml train 3").endswith("Put a path with a blank in quotes")
    assert "quotes" not in refusal("a.yaml t x")


def test_one_field_is_refused_as_before():
    assert refusal("a.yaml") == (
        "expected <cfg> <task> [epochs], found 1 field. The task is any one word; quote a field "
        "that contains spaces"
    )


@pytest.mark.parametrize("third", ["lr=1", "--lr=1", "-v", "--", "name=b"])
def test_a_third_field_with_an_equals_sign_or_a_dash_means_that_no_epochs_are_given(third):
    assert line(f"a.yaml t {third}").epochs is None


def test_a_task_with_an_equals_sign_is_refused_where_words_follow():
    assert "the second field is the task" in refusal("a.yaml lr=1 seed=2")


@pytest.mark.parametrize("text", ["a.yaml t 60 # note", "a.yaml t 60 lr=1 #x", "a.yaml t\t#x"])
def test_a_word_that_begins_with_a_hash_is_refused(text):
    assert "a comment needs its own line" in refusal(text)


@pytest.mark.parametrize(
    ("words", "override"),
    [
        ("-- '#1'", "#1"),
        ('-- "#1"', "#1"),
        (r"-- \#1", "#1"),
        ("tag=#1", "tag=#1"),
        ("tag='x # y'", "tag=x # y"),
        ('tag="it\'s # y"', "tag=it's # y"),
        (r"tag=x\ #y", "tag=x #y"),
    ],
)
def test_a_hash_in_quotes_or_within_a_word_is_the_scripts(words, override):
    assert line(f"a.yaml t {words}").overrides == (override,)


LITERAL = [
    "a={b:1}",
    "a={cfg}",
    "{more}",
    "$HOME",
    "$(id)",
    "`id`",
    "*",
    "~",
    "a=[1,2]",
    "标题=你好",
]


@pytest.mark.parametrize("word", LITERAL)
def test_overrides_are_literal(word):
    assert line(f"a.yaml t -- {shlex.quote(word)}").overrides == (word,)


@pytest.mark.parametrize("text", ["a.yaml t 'x", 'a.yaml t -- tag="x', "a.yaml t it's"])
def test_a_quote_that_is_not_closed_is_told_with_what_to_do(text):
    assert "a quotation mark is not closed: close it" in refusal(text)


def test_a_lone_backslash_is_told_with_what_to_do():
    assert refusal("a.yaml t \\").startswith("ends with a \\")


def test_bytes_that_are_no_text_are_told_with_what_to_do():
    with pytest.raises(ValueError, match=r"byte 8 is 0xff\): save the file as UTF-8"):
        parse(b"a.yaml \xff", 0, 1)


# --- without a config, without a task


def test_a_dash_as_config_is_a_cell_without_one():
    found = line("- mnist lr=1")
    assert (found.cfg, found.name, found.has_config) == ("-", "mnist_lr1", False)
    assert line("a.yaml t").has_config


def test_a_dash_as_task_is_a_cell_without_one():
    assert (line("a.yaml - lr=1").task, line("a.yaml - lr=1").name) == ("-", "a_lr1")


def test_with_neither_the_words_are_the_name():
    assert line("- - --lr=0.1 --seed=2").name == "lr0.1_seed2"
    assert line("- - name=x").name == "x"
    assert "invalid cell name" in refusal("- -")


@pytest.mark.parametrize("cfg", ["-x", "--", "./-x"])
def test_other_dashes_are_no_config(cfg):
    assert "begins with '-'" in refusal(f"{cfg} t")


def test_a_line_of_three_thousand_bytes_of_overrides_is_read():
    long = "数" * 1000
    assert line(f"a.yaml t -- {long}").overrides == (long,)


# --- spelled anew


TEXT = st.text(
    st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("=-+~#{}$'\"\\ ,._"),
    max_size=12,
)
NAMES = st.from_regex(cell_name.CELL_NAME, fullmatch=True).map(nfc)
VARIABLES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True).filter(
    lambda name: name != "PYTHONPATH" and not name.startswith("BOXCAR_")
)
OWNS = st.builds(
    Own,
    nproc=st.none() | st.integers(1, 9999),
    after=st.lists(NAMES.map(lambda name: name.replace(",", "-")), max_size=3).map(tuple),
    time_s=st.none() | st.integers(1, 10**7),
    env=st.dictionaries(VARIABLES, TEXT, max_size=3),
)
OVERRIDES = st.lists(
    TEXT | st.sampled_from(["--", "-", "~lr", "+x", "", "60", "name=b", "lr=1", "+lr=2", "#", "x"]),
    max_size=5,
).map(tuple)


def is_name(text: str) -> bool:
    try:
        cell_name.check_name(text)
    except ValueError:
        return False
    return True


@st.composite
def lines(draw: st.DrawFn) -> CellLine:
    cfg = draw(st.sampled_from(["a.yaml", "-", "配置/b c.yaml"]))
    task = draw(st.sampled_from(["t", "-", "two words"]))
    overrides = draw(OVERRIDES)
    derived = cell_name.name_of_line(cfg, task, overrides)
    name = draw(st.just(derived if is_name(derived) else "x") | NAMES.filter(is_name))
    epochs = draw(st.none() | st.integers(1, 999_999_999))
    return CellLine(0, 1, name, cfg, task, epochs, draw(OWNS), overrides)


def with_words(*overrides: str, own: Own = NOTHING_OWN) -> CellLine:
    return CellLine(0, 1, "a", "a.yaml", "t", None, own, overrides)


@given(lines())
@example(with_words("~lr"))
@example(with_words("+x", "y=1"))
@example(with_words("~lr", own=Own(nproc=2)))
@example(with_words("--", "x"))
@example(with_words("#x", "-v"))
@example(with_words("60"))
def test_what_a_person_is_shown_says_the_same_line(asked):
    assert line(cell_line.line_of(asked)) == asked


@given(st.text(max_size=60))
def test_a_line_that_is_read_is_spelled_as_what_it_says(text):
    try:
        found = line(text)
    except ValueError:
        return
    assert line(cell_line.line_of(found)) == found


def test_letters_of_any_script_need_no_quotes():
    text = "配置/a.yaml 重建 3 标题=你好 größe=1"
    assert cell_line.line_of(line(text)) == text
    assert cell_line.line_of(line("a.yaml t 标题='你 好'")) == "a.yaml t '标题=你 好'"


def test_the_words_of_a_line_are_its_variables_and_its_overrides():
    found = line("a.yaml t 3 nproc=2 env.B=1 env.A=2 lr=1")
    assert cell_line.words_of_line(found) == ("env.B=1", "env.A=2", "lr=1")
    assert cell_line.words_of_line(line("a.yaml t 3 nproc=2")) == ()


# --- as the event of its begin says it


def started(cell: str = "a", **data: Any) -> Event:
    # Through JSON, as it comes out of a journal; what is null is left out there.
    kept = {key: value for key, value in data.items() if value is not None}
    return Event(
        1,
        "evt_1",
        "2026-11-21T03:27:43.973Z",
        "cell.started",
        {"cell": cell} | json.loads(json.dumps(kept)),
    )


@pytest.mark.parametrize(
    "text",
    [
        "a.yaml t 3",
        "a.yaml t 3 nproc=2 after=x,y time=1h env.A='x y' env.B=",
        "- - 3 name=a --lr 1 'x={a:1}'",
        "a.yaml t 3 -- -- name=b",
    ],
)
def test_an_event_says_the_whole_line(text):
    line = cell_line.parse(text.encode(), -1, 0)
    event = started(line.name, **cell_line.begun_fields(line), cfg=line.cfg, epochs=line.epochs)
    assert cell_line.begun_line(event) == line


def test_an_event_of_an_older_agent_says_a_line_without_words():
    found = cell_line.begun_line(started(cfg="a.yaml", task="t", epochs=3))
    assert found == CellLine(-1, 0, "a", "a.yaml", "t", 3)


def test_what_says_nothing_is_left_out():
    line = cell_line.parse(b"a.yaml t 3", 0, 1)
    assert cell_line.begun_fields(line) == {"task": "t", "own": None, "overrides": None}


def test_own_words_that_are_none_are_damage():
    with pytest.raises(DamagedError, match="nproc"):
        cell_line.begun_line(started(cfg="a", task="t", epochs=3, own={"nproc": "many"}))
    with pytest.raises(KeyError):
        cell_line.begun_line(started(cfg="a", epochs=3))


@given(st.lists(st.text(max_size=20), min_size=1, max_size=4).map(tuple))
def test_overrides_come_back_letter_by_letter(overrides):
    line = CellLine(-1, 0, "a", "a.yaml", "t", 3, Own(env={"A": "{x}"}), overrides)
    assert (
        cell_line.begun_line(started(**cell_line.begun_fields(line), cfg="a.yaml", epochs=3))
        == line
    )
