from __future__ import annotations

import pytest

from boxcar.shared.catalogue.sentence import LANGUAGES, Sentence
from boxcar.shared.news.text import trial


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_test_message_says_who_sent_it_and_has_the_word_of_keyword_filters(language: str) -> None:
    place = Sentence("notify.box", box="box-a")
    said = trial("digits", place, "2026-11-22T22:41:07.123Z", language)
    first, second, _ = said.splitlines()
    assert first.startswith("Boxcar digits")
    assert "box-a" in second
    assert "UTC" in second and "2026-11-22 22:41" in second
