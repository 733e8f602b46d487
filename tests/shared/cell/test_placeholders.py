from __future__ import annotations

import pytest

from boxcar.shared.cell.placeholders import Placeholder, parse_word


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
def test_a_word_is_split_into_text_and_placeholders(
    word: str, parts: list[str | Placeholder]
) -> None:
    assert parse_word(word) == parts


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("{ouput}", r"unknown placeholder \{ouput\}"),
        ("{}", r"known: \{cfg\} \{task\} \{epochs\} \{name\} \{run\} \{out\} \{resume\}"),
        ('{"lr": 1}', "unknown placeholder"),
        ("a{b", "lone {"),
        ("a}b", "lone }"),
    ],
)
def test_an_unknown_placeholder_or_lone_brace_is_refused(word: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_word(word)
