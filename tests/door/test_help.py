from __future__ import annotations

import re
import shlex

import pytest
from test_cli import parsed_words
from test_frozen import VERBS

from boxcar.door import flags, help
from boxcar.door.examples import EXAMPLES
from boxcar.door.program import _tasks
from boxcar.laptop.common.text_layout import width_in_cells

LANGUAGES = ["en", "zh"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_list_has_every_verb_once_and_in_one_line_of_80_columns(language: str) -> None:
    lines = help.of_all(list(VERBS), language, 80).splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(named) == sorted(VERBS)
    assert max(map(width_in_cells, lines)) <= 80


def test_a_verb_that_stands_in_no_group_is_among_the_others() -> None:
    grouped = {verb for names in help.GROUPS.values() for verb in names}
    assert set(VERBS) - grouped == {"check-profiles"}
    assert "\nother\n  check-profiles" in help.of_all(list(VERBS), "en", 80)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [24, 80])
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_help_of_a_verb_has_its_flags_and_none_of_invokes_words(
    verb: str, width: int, language: str
) -> None:
    found = flags.of_verb(verb, _tasks().namespace[verb].get_arguments())
    text = help.of_verb(verb, found, language, width)
    for name in VERBS[verb].split():
        assert re.search(rf"(^|\s)--?{name}\b", text)
    assert not re.search(r"core-opts|Docstring|STRING|other tasks", text)
    body = text[: text.rindex("\n\n")]  # commands to copy are never broken
    if width == 80:
        assert max(width_in_cells(line) for line in body.splitlines()) <= width


@pytest.mark.parametrize(
    ("verb", "words"), [(verb, words) for verb, lines in EXAMPLES.items() for words in lines]
)
def test_every_example_can_be_typed(verb: str, words: str) -> None:
    assert parsed_words(*shlex.split(words)) == [verb]


def test_every_verb_has_an_example() -> None:
    assert set(EXAMPLES) == set(VERBS)
