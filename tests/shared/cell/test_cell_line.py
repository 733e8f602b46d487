"""The grammar of one line, sentence by sentence; how a queue file is read stands beside its own."""

from __future__ import annotations

import shlex

import pytest

from boxcar.shared.cell.cell_line import CellLine, parse


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
        "expected <cfg> <task> [epochs], found 1 field; the task is one word of your choice, and a "
        "field with spaces stands in quotes"
    )


@pytest.mark.parametrize("third", ["lr=1", "--lr=1", "-v", "--", "name=b"])
def test_a_third_field_with_an_equals_sign_or_a_dash_means_that_no_epochs_are_given(
    third: str,
) -> None:
    assert line(f"a.yaml t {third}").epochs is None


def test_a_task_with_an_equals_sign_is_refused_where_words_follow() -> None:
    assert "the second field is the task" in refusal("a.yaml lr=1 seed=2")


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


@pytest.mark.parametrize("text", ["a.yaml t 'x", 'a.yaml t -- tag="x', "a.yaml t it's"])
def test_a_quote_that_is_not_closed_is_told_with_what_to_do(text: str) -> None:
    assert "a quotation mark is opened and not closed: close it" in refusal(text)


def test_a_lone_backslash_is_told_with_what_to_do() -> None:
    assert refusal("a.yaml t \\").startswith("ends with a lone \\")


def test_bytes_that_are_no_text_are_told_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"byte 8 is 0xff\): save the file as UTF-8"):
        parse(b"a.yaml \xff", 0, 1)


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


def test_a_line_of_three_thousand_bytes_of_overrides_is_read() -> None:
    long = "数" * 1000
    assert line(f"a.yaml t -- {long}").overrides == (long,)
