from __future__ import annotations

import re
import shlex

import pytest
from test_cli import parsed_words
from test_frozen import VERBS

from boxcar.door import help
from boxcar.door.verb_table import EVERYDAY
from boxcar.door.verb_table import VERBS as TABLE
from boxcar.shared.text_width import width_in_cells

LANGUAGES = ["en", "zh"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_list_is_one_screen_that_names_every_verb_once(language: str) -> None:
    lines = help.help_of_all(language, 80).splitlines()
    assert len(lines) < 24  # the prompt has a line, too
    assert max(map(width_in_cells, lines)) <= 80
    listed = "\n".join(lines[2 : len(lines) - len(help.NOTES)])
    assert all(re.search(rf"^  {verb}  ", listed, re.MULTILINE) for verb in EVERYDAY)
    others = listed.partition("\n\n")[2]
    named = re.findall(r"(?<=[ ,] )([a-z-]+)(?=,|$)", others, re.MULTILINE)
    assert sorted([*EVERYDAY, *named]) == sorted(VERBS)


def test_a_narrow_terminal_gets_every_name_whole() -> None:
    text = help.help_of_all("en", 40)
    assert all(re.search(rf"(?<![\w-]){verb}(?![\w-])", text) for verb in VERBS)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [24, 80])
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_help_of_a_verb_has_its_flags(verb: str, width: int, language: str) -> None:
    text = help.help_of_verb(TABLE[verb], language, width)
    for name in VERBS[verb].split():
        assert re.search(rf"(^|\s)--?{name}\b", text)
    body = text[: text.rindex("\n\n")]  # commands to copy are never broken
    if width == 80:
        assert max(width_in_cells(line) for line in body.splitlines()) <= width


@pytest.mark.parametrize(
    ("verb", "words"), [(verb.name, words) for verb in TABLE.values() for words in verb.examples]
)
def test_every_example_can_be_typed(verb: str, words: str) -> None:
    assert parsed_words(*shlex.split(words)) == [verb]
