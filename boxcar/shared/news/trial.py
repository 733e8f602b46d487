"""The message of `notify --test`. Its first line has the word that filters of robots look for."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Sentence


def text(run: str, place: Sentence, at: str, language: str) -> str:
    """`place` is who sends it, `at` when, as in files."""
    lines = (
        Sentence("notify.test_title", run=run),
        Sentence("notify.test_from", place=place, at=at[:16].replace("T", " ")),
        Sentence("notify.test_then"),
    )
    return "\n".join(line.said(language) for line in lines)
