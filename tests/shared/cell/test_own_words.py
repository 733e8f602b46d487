from __future__ import annotations

import shlex

import pytest

from boxcar.shared.cell import own_words
from boxcar.shared.cell.cell_line import CellLine, parse
from boxcar.shared.cell.own_words import Own
from boxcar.shared.cell.placeholders import Placeholder, parse_word


def line(text: str) -> CellLine:
    return parse(text.encode(), 0, 1)


def refusal(text: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        line(text)
    return str(caught.value)


# --- own words


def test_own_words_are_boxcars():
    found = line("a.yaml t 3 name=b nproc=2 after=x,y time=1h30m env.A=1 env.B_2='x y=z'")
    own = Own(nproc=2, after=("x", "y"), time_s=5400, env={"A": "1", "B_2": "x y=z"})
    assert found == CellLine(0, 1, "b", "a.yaml", "t", 3, own)


def test_own_words_follow_without_epochs_too_and_in_any_order():
    found = line("a.yaml t time=90s name=b lr=1")
    assert (found.name, found.epochs, found.own.time_s) == ("b", None, 90)
    assert found.overrides == ("lr=1",)


@pytest.mark.parametrize("word", ["env.id=CartPole", "env.Id=1", "env.9A=1", "env.=1", "name", "x"])
def test_what_only_looks_like_an_own_word_is_the_scripts(word):
    assert not own_words.is_own(word)
    assert line(f"a.yaml t -- {word}").overrides == (word,)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("name=b name=c", "name"),
        ("nproc=1 nproc=1", "nproc"),
        ("after=x after=y", "after"),
        ("time=1h time=2h", "time"),
        ("env.A=1 env.B=2 env.A=1", "env.A"),
    ],
)
def test_each_own_word_stands_once(words, key):
    assert refusal(f"a.yaml t {words}") == f"{key}= is given twice"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("nproc=0", "nproc= must be a number"),
        ("nproc=two", "nproc= must be a number"),
        ("nproc=10000", "nproc= must be a number"),
        ("after=", "takes cell names"),
        ("after=a,,b", "takes cell names"),
        ("time=90", "expected a time such as"),
        ("time=0s", "expected a time such as"),
        ("name=", "invalid cell name ''"),
        ("name=../x", "invalid cell name '../x'"),
        ("name=-x", "invalid cell name '-x'"),
        ("env.PYTHONPATH=x", "set it under env: in job.yaml"),
        ("env.BOXCAR_OUT=x", "are reserved"),
    ],
)
def test_an_own_word_with_a_value_that_is_none_is_refused(word, expected):
    assert expected in refusal(f"a.yaml t {word}")


# --- overrides


def test_overrides_begin_at_the_first_word_that_is_not_boxcars():
    found = line("a.yaml t 60 nproc=2 lr=1e-3 --flag 4 +x=1 ~y")
    assert found.own == Own(nproc=2)
    assert found.overrides == ("lr=1e-3", "--flag", "4", "+x=1", "~y")


def test_the_first_double_dash_is_dropped_and_later_ones_are_passed_on():
    assert line("a.yaml t -- --learning_rate=1e-3").overrides == ("--learning_rate=1e-3",)
    assert line("a.yaml t x=1 -- y -- z").overrides == ("x=1", "y", "--", "z")
    assert line("a.yaml t -- -- x").overrides == ("--", "x")


def test_a_double_dash_alone_is_no_override():
    assert line("a.yaml t 3 --") == line("a.yaml t 3")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("lr=1 name=b", "'name=b' comes after an override"),
        ("--flag time=1h", "'time=1h' comes after an override"),
        ("lr=1 env.A=1", "'env.A=1' comes after an override"),
        ("nprocs=2", "'nprocs=2' looks like Boxcar's option nproc="),
        ("nam=2", "'nam=2' looks like Boxcar's option name="),
        ("Time=2", "'Time=2' looks like Boxcar's option time="),
        ("env,WANDB=2", "'env,WANDB=2' looks like Boxcar's option env.WANDB="),
        ("envWANDB=2", "'envWANDB=2' looks like Boxcar's option env.WANDB="),
        ("lr=1 foo", "'foo' is neither key=value nor the value of a flag"),
        ("--a 1 2", "'2' is neither key=value nor the value of a flag"),
        ("lr=1 lr=2", "lr= is given twice"),
        ("lr=1 +lr=2", "lr= is given twice"),
        ("++lr=1 ~lr=2", "lr= is given twice"),
        ("--lr=1 lr=1", "lr= is given twice"),
    ],
)
def test_a_slip_of_the_fingers_is_refused_with_the_way_out(words, expected):
    found = refusal(f"a.yaml t {words}")
    assert expected in found
    assert found.endswith("; if your script takes it, put it after --")


@pytest.mark.parametrize(
    "words",
    ["name=b", "nprocs=2", "foo", "lr=1 lr=2", "60", "time=1h name=c", "env.PYTHONPATH=x", "''"],
)
def test_behind_a_double_dash_nothing_is_judged(words):
    assert line(f"a.yaml t -- {words}").overrides == tuple(shlex.split(words))


def test_only_a_first_key_is_taken_for_a_slip():
    assert line("a.yaml t lr=1 nprocs=2").overrides == ("lr=1", "nprocs=2")
    assert line("a.yaml t --nprocs=2").overrides == ("--nprocs=2",)
    assert line("a.yaml t env.id=CartPole").overrides == ("env.id=CartPole",)


def test_how_many_overrides_stand_before_a_double_dash_is_known():
    assert line("a.yaml t 3 --lr 1 -- --lr 2").judged == 2
    assert line("a.yaml t 3 nproc=2 --lr 1").judged == 2
    assert line("a.yaml t 3 -- --lr 2").judged == 0


# --- placeholders of the command


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("train.py", ["train.py"]),
        ("", []),
        ("{cfg}", [Placeholder("cfg")]),
        ("--out={out}/{name}.pt", ["--out=", Placeholder("out"), "/", Placeholder("name"), ".pt"]),
        ("{{a}}{{", ["{a}{"]),
        ("{{{cfg}}}", ["{", Placeholder("cfg"), "}"]),
    ],
)
def test_a_word_is_split_into_text_and_placeholders(word, parts):
    assert parse_word(word) == parts


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("{ouput}", r"unknown placeholder \{ouput\}"),
        ("{}", r"known: \{cfg\} \{task\} \{epochs\} \{name\} \{run\} \{out\} \{resume\}"),
        ('{"lr": 1}', "unknown placeholder"),
        ("a{b", "unmatched {"),
        ("a}b", "unmatched }"),
    ],
)
def test_an_unknown_placeholder_or_lone_brace_is_refused(word, expected):
    with pytest.raises(ValueError, match=expected):
        parse_word(word)
