from __future__ import annotations

import traceback
from urllib.parse import quote, quote_plus

import pytest

from boxcar.shared.known_secrets import LEFT_OUT, KnownSecrets

VALUE = "tok/3n +'%"


def said_of_a_missing_key() -> str:
    try:
        {}[VALUE]
    except KeyError as error:
        return "".join(traceback.format_exception(error))
    return ""


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(VALUE, id="as it is"),
        pytest.param(f"https://me:{quote(VALUE, safe='')}@git.example/a", id="in an address"),
        pytest.param(f"/a%20b?t={quote(VALUE)}&u=1", id="in a path"),
        pytest.param(f"t={quote_plus(VALUE).lower()}", id="as a form has it, in small letters"),
        pytest.param(said_of_a_missing_key(), id="in the quotes of a traceback"),
    ],
)
def test_a_value_is_left_out_however_it_is_spelled(said):
    left = KnownSecrets([VALUE]).left_out_of(said)
    assert LEFT_OUT in left
    assert "tok" not in left and "3n" not in left.replace("%3n", "")


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("no access with hf_abcdef", f"no access with {LEFT_OUT}"),
        ("no access with hf_abc", f"no access with {LEFT_OUT}"),
        ("no access with hf_abc… and 3 more", f"no access with {LEFT_OUT}… and 3 more"),
        ("no access with hf_a...", f"no access with {LEFT_OUT}..."),
        ("no access with hf_", "no access with hf_"),
        ("no access with hf_abc to x", "no access with hf_abc to x"),
    ],
)
def test_the_beginning_of_a_value_is_left_out_where_a_sentence_was_cut(said, left):
    assert KnownSecrets(["hf_abcdefghij"]).left_out_of(said) == left


def test_each_line_of_a_value_is_one_and_short_ones_are_words():
    known = KnownSecrets(["-----BEGIN-----\nMIIEpAIB\nabc\n", "", "on"])
    assert known.left_out_of("read MIIEpAIB, on abc") == f"read {LEFT_OUT}, on abc"


def test_of_two_values_the_longer_one_is_left_out_first():
    assert KnownSecrets(["token", "token-of-mine"]).left_out_of("token-of-mine") == LEFT_OUT


def test_texts_names_and_rows_are_looked_at_and_numbers_stay():
    known = KnownSecrets(["1234", "tok3n"])
    said = {"acc tok3n": 0.1234, "rows": ["tok3n", 1234, None, ("a", "tok3n")], "n": True}
    assert known.left_out_of(said) == {
        f"acc {LEFT_OUT}": 0.1234,
        "rows": [LEFT_OUT, 1234, None, ("a", LEFT_OUT)],
        "n": True,
    }


def test_where_nothing_is_known_everything_stays():
    said = {"a": ["b"]}
    assert KnownSecrets(["", "abc"]).left_out_of(said) is said
