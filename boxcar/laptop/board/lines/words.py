"""The board's sentences, in the language of who reads it."""

from __future__ import annotations

from typing import Any

from boxcar.shared.catalogue.board import condition_sentence
from boxcar.shared.catalogue.sentence import Sentence, in_language


def word(name: str, language: str, /, **fields: Any) -> str:
    """`board.NAME` of the catalogue. Raises KeyError for one that is not there."""
    return Sentence(f"board.{name}", **fields).said(language)


def condition_word(condition: str, language: str) -> str:
    """What is the matter with a queue; a word of a newer version stays as it is."""
    return str(in_language(condition_sentence(condition), language))
