"""The grammar of one line, sentence by sentence; how a queue file is read stands beside its own."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from boxcar.shared.cell import cell_line, cell_name
from boxcar.shared.cell.cell_line import NOTHING_OWN, CellLine, Own, parse, spelled
from boxcar.shared.cell.spelling import nfc


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
def test_a_line_of_two_or_three_fields_means_what_it_meant(text: str, expected: CellLine) -> None:
    assert line(text) == expected


@pytest.mark.parametrize("third", ["6O", "0", "1.0", "1e3", "+1", "~lr", "''", "x", "١", "9" * 10])
def test_a_third_field_that_is_no_epochs_is_still_refused(third: str) -> None:
    assert "epochs must be a whole number of at least 1" in refusal(f"a.yaml t {third}")
    assert "epochs must be a whole number of at least 1" in refusal(f"a.yaml t {third} lr=1")


def test_one_field_is_refused_as_before() -> None:
    assert refusal("a.yaml") == (
        "expected <cfg> <task> [epochs], found 1 field; put a field with spaces in quotes"
    )


@pytest.mark.parametrize("third", ["lr=1", "--lr=1", "-v", "--", "name=b"])
def test_a_third_field_with_an_equals_sign_or_a_dash_means_that_no_epochs_are_given(
    third: str,
) -> None:
    assert line(f"a.yaml t {third}").epochs is None


def test_a_task_with_an_equals_sign_is_refused_where_words_follow() -> None:
    assert "the second field is the task" in refusal("a.yaml lr=1 seed=2")


# --- own words


def test_own_words_are_boxcars() -> None:
    found = line("a.yaml t 3 name=b nproc=2 after=x,y time=1h30m env.A=1 env.B_2='x y=z'")
    own = Own(nproc=2, after=("x", "y"), time_s=5400, env={"A": "1", "B_2": "x y=z"})
    assert found == CellLine(0, 1, "b", "a.yaml", "t", 3, own)


def test_own_words_follow_without_epochs_too_and_in_any_order() -> None:
    found = line("a.yaml t time=90s name=b lr=1")
    assert (found.name, found.epochs, found.own.time_s) == ("b", None, 90)
    assert found.overrides == ("lr=1",)


@pytest.mark.parametrize("word", ["env.id=CartPole", "env.Id=1", "env.9A=1", "env.=1", "name", "x"])
def test_what_only_looks_like_an_own_word_is_the_scripts(word: str) -> None:
    assert not cell_line.is_own(word)
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
def test_each_own_word_stands_once(words: str, key: str) -> None:
    assert refusal(f"a.yaml t {words}") == f"{key}= stands twice"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("nproc=0", "a number of ranks"),
        ("nproc=two", "a number of ranks"),
        ("nproc=10000", "a number of ranks"),
        ("after=", "names cells"),
        ("after=a,,b", "names cells"),
        ("time=90", "expected a time such as"),
        ("time=0s", "expected a time such as"),
        ("name=", "the cell's name ''"),
        ("name=../x", "the cell's name '../x'"),
        ("name=-x", "the cell's name '-x'"),
        ("env.PYTHONPATH=x", "write it into env: of job.yaml"),
        ("env.BOXCAR_OUT=x", "are set by Boxcar itself"),
    ],
)
def test_an_own_word_with_a_value_that_is_none_is_refused(word: str, expected: str) -> None:
    assert expected in refusal(f"a.yaml t {word}")


# --- overrides


def test_overrides_begin_at_the_first_word_that_is_not_boxcars() -> None:
    found = line("a.yaml t 60 nproc=2 lr=1e-3 --flag 4 +x=1 ~y")
    assert found.own == Own(nproc=2)
    assert found.overrides == ("lr=1e-3", "--flag", "4", "+x=1", "~y")


def test_the_first_double_dash_is_dropped_and_later_ones_are_passed_on() -> None:
    assert line("a.yaml t -- --learning_rate=1e-3").overrides == ("--learning_rate=1e-3",)
    assert line("a.yaml t x=1 -- y -- z").overrides == ("x=1", "y", "--", "z")
    assert line("a.yaml t -- -- x").overrides == ("--", "x")


def test_a_double_dash_alone_is_no_override() -> None:
    assert line("a.yaml t 3 --") == line("a.yaml t 3")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("lr=1 name=b", "'name=b' stands behind an override"),
        ("--flag time=1h", "'time=1h' stands behind an override"),
        ("lr=1 env.A=1", "'env.A=1' stands behind an override"),
        ("nprocs=2", "'nprocs=2' is nearly nproc="),
        ("nam=2", "'nam=2' is nearly name="),
        ("Time=2", "'Time=2' is nearly time="),
        ("env,WANDB=2", "'env,WANDB=2' is nearly env.WANDB="),
        ("envWANDB=2", "'envWANDB=2' is nearly env.WANDB="),
        ("lr=1 foo", "'foo' is neither key=value nor the value of a flag"),
        ("--a 1 2", "'2' is neither key=value nor the value of a flag"),
        ("lr=1 lr=2", "lr= stands twice"),
        ("lr=1 +lr=2", "lr= stands twice"),
        ("++lr=1 ~lr=2", "lr= stands twice"),
        ("--lr=1 lr=1", "lr= stands twice"),
    ],
)
def test_a_slip_of_the_fingers_is_refused_with_the_way_out(words: str, expected: str) -> None:
    found = refusal(f"a.yaml t {words}")
    assert expected in found
    assert found.endswith("; if your script takes it, put it after --")


@pytest.mark.parametrize(
    "words",
    ["name=b", "nprocs=2", "foo", "lr=1 lr=2", "60", "time=1h name=c", "env.PYTHONPATH=x", "''"],
)
def test_behind_a_double_dash_nothing_is_judged(words: str) -> None:
    assert line(f"a.yaml t -- {words}").overrides == tuple(shlex.split(words))


def test_only_a_first_key_is_taken_for_a_slip() -> None:
    assert line("a.yaml t lr=1 nprocs=2").overrides == ("lr=1", "nprocs=2")
    assert line("a.yaml t --nprocs=2").overrides == ("--nprocs=2",)
    assert line("a.yaml t env.id=CartPole").overrides == ("env.id=CartPole",)


@pytest.mark.parametrize("text", ["a.yaml t 60 # note", "a.yaml t 60 lr=1 #x", "a.yaml t\t#x"])
def test_a_word_that_begins_with_a_hash_is_refused(text: str) -> None:
    assert "a remark stands on a line of its own" in refusal(text)


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
def test_a_hash_in_quotes_or_within_a_word_is_the_scripts(words: str, override: str) -> None:
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
def test_overrides_are_literal(word: str) -> None:
    assert line(f"a.yaml t -- {shlex.quote(word)}").overrides == (word,)


# --- without a config, without a task


def test_a_dash_as_config_is_a_cell_without_one() -> None:
    found = line("- mnist lr=1")
    assert (found.cfg, found.name, found.has_config) == ("-", "mnist_lr1", False)
    assert line("a.yaml t").has_config


def test_a_dash_as_task_is_a_cell_without_one() -> None:
    assert (line("a.yaml - lr=1").task, line("a.yaml - lr=1").name) == ("-", "a_lr1")


def test_with_neither_the_words_are_the_name() -> None:
    assert line("- - --lr=0.1 --seed=2").name == "lr0.1_seed2"
    assert line("- - name=x").name == "x"
    assert "the cell's name" in refusal("- -")


@pytest.mark.parametrize("cfg", ["-x", "--", "./-x"])
def test_other_dashes_are_no_config(cfg: str) -> None:
    assert "begins with '-'" in refusal(f"{cfg} t")


# --- a line and its words are one


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
        cell_name.check(text)
    except ValueError:
        return False
    return True


@st.composite
def lines(draw: st.DrawFn) -> CellLine:
    cfg = draw(st.sampled_from(["a.yaml", "-", "配置/b c.yaml"]))
    task = draw(st.sampled_from(["t", "-", "two words"]))
    overrides = draw(OVERRIDES)
    derived = cell_name.of_line(cfg, task, overrides)
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
def test_what_a_person_is_shown_says_the_same_line(asked: CellLine) -> None:
    assert line(spelled(asked)) == asked


@given(st.text(max_size=60))
def test_a_line_that_is_read_is_spelled_as_what_it_says(text: str) -> None:
    try:
        found = line(text)
    except ValueError:
        return
    assert line(spelled(found)) == found


def test_the_words_of_a_line_are_its_variables_and_its_overrides() -> None:
    found = line("a.yaml t 3 nproc=2 env.B=1 env.A=2 lr=1")
    assert cell_line.words(found) == ("env.B=1", "env.A=2", "lr=1")
    assert cell_line.words(line("a.yaml t 3 nproc=2")) == ()


def test_a_line_of_three_thousand_bytes_of_overrides_is_read() -> None:
    long = "数" * 1000
    assert line(f"a.yaml t -- {long}").overrides == (long,)
