"""Which row fits a line, or an exception by its words and its place. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boxcar.shared.record import dataclass
from boxcar.shared.triage import tracebacks
from boxcar.shared.triage.evidence import Quote
from boxcar.shared.triage.log_lines import Line
from boxcar.shared.triage.signature import Signature, Where
from boxcar.shared.triage.signatures.all_rows import BY_ID, SIGNATURES
from boxcar.shared.triage.tracebacks import Raised, Traceback

LONGEST_WORDS = 300
# As torch writes since 2.9, below each error of CUDA.
_LOOK_IT_UP = "Search for `"


@dataclass(frozen=True)
class Hit:
    """A row, and the words by which it was known."""

    row: Signature
    quotes: tuple[Quote, ...]


def hit_of_lines(rows: Iterable[Signature], lines: Sequence[Line]) -> Hit | None:
    """The first row that stands in a line, with the last such line."""
    text = "\n".join(line.text for line in lines)
    for row in rows:
        # Most stand nowhere: one search over all is a hundred times as fast as one for each line.
        if row.pattern.search(text):
            for line in reversed(lines):
                if row.pattern.search(line.text):
                    return Hit(row, (Quote(line.number, line.text.strip()[:LONGEST_WORDS]),))
    return None


def hit_of_chain(traceback: Traceback) -> Hit | None:
    """By the exception that was raised last; one that says little yields to what led to it."""
    hits = [hit for raised in reversed(traceback.chain) if (hit := hit_of_words(raised))]
    named = [hit for hit in hits if not (hit.row.is_general or hit.row.is_symptom)]
    best = named or [hit for hit in hits if not hit.row.is_symptom] or hits
    return best[0] if best else None


def hit_of_words(raised: Raised) -> Hit | None:
    """By the words of an exception, and by the place where it was raised."""
    row = _row_of(raised)
    id = tracebacks.id_of_frames(row.id if row else "", raised.words, raised.frame)
    if not id:
        return None
    return Hit(BY_ID[id], (Quote(raised.number, _words_of(row or BY_ID[id], raised)),))


def _row_of(raised: Raised) -> Signature | None:
    rows = [row for row in SIGNATURES if row.where is not Where.LINE]
    for is_general in (False, True):
        for row in rows:
            if row.is_general is is_general and row.pattern.search(raised.words):
                return row
    return None


def _words_of(row: Signature, raised: Raised) -> str:
    """The first line of the exception, and the last by which it was known: a first one may only
    point on, as does one that says where to look its name up.
    """
    lines = [line for line in raised.words.split("\n") if not line.startswith(_LOOK_IT_UP)]
    by = next((line for line in reversed(lines) if row.pattern.search(line)), "")
    parts = dict.fromkeys((raised.first, by))
    return " / ".join(part for part in parts if part)[:LONGEST_WORDS]
