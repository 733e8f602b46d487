"""A verdict on a failure in lines: what it is, its evidence, what follows, what to do and type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxcar.laptop.triage.advice import Advice
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.triage.cause import Quote


def verdict_lines(found: Advice, quotes: Sequence[Quote]) -> Iterator[Sentence]:
    if found.course is None:
        return
    about = {"course": found.course.value, "id": found.id or "?", "words": found.words}
    yield Sentence("triage.verdict", **about)
    yield from map(_quoted_evidence, quotes)
    yield Sentence("triage.then", text=Sentence(f"triage.follows.{found.course.value}"))
    if found.todo:
        yield Sentence("triage.todo", text=found.todo)
    for number, step in enumerate(found.ladder, 1):
        yield Sentence("triage.step", n=number, text=step)
    yield Sentence("triage.type", text=found.types.typed())
    yield Sentence("triage.more", link=found.link)


def _quoted_evidence(quote: Quote) -> Sentence:
    if quote.line:
        return Sentence("triage.line", line=quote.line, text=quote.text)
    return Sentence("triage.said", text=quote.text)
