"""Which row fits a line, or an exception by its words and its place. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from boxcar.shared.record import dataclass
from boxcar.shared.triage import tracebacks
from boxcar.shared.triage.evidence import Quote
from boxcar.shared.triage.log_lines import Line
from boxcar.shared.triage.signature import Signature, Where
from boxcar.shared.triage.signatures.all_rows import BY_ID, SIGNATURES
from boxcar.shared.triage.tracebacks import Raised, Traceback

# What the last lines of a log are about, where no row knows them: a word of memory, of a disk.
#
# Only an end is looked at: earlier lines tell of what the script survived.


_LAST = 12  # lines
_FAILED = r"(?:error|fail\w*|fatal|cannot|can't|could not|couldn't|unable to|exception)\b"
_THING = r"(?:\w+ ){0,3}"
# The row that a line gets, by what it is about; the first that fits.
_ROWS = tuple(
    (id, re.compile(pattern, re.IGNORECASE | re.ASCII))
    for id, pattern in (
        (
            "M2",
            r"(?:gpu|cuda|vram|video|device|graphics) (?:memory|ram)\b[^\n]{0,60}"
            r"(?:available|enough|exhaust|full|insufficient)"
            r"|(?:enough|insufficient|out of|exceed\w*) (?:gpu|cuda|vram|video)"
            r"|\bout of memory\b|\bOOM\b",
        ),
        (
            "HOSTMEM",
            r"(?:not enough|insufficient|ran out of|run out of|exhausted) (?:system |host )?"
            r"(?:memory|ram)\b|memory exhausted",
        ),
        (
            "DISK",
            r"(?:disk|storage|volume)\b[^\n]{0,30}\b(?:full|exhausted|no space)|not enough space",
        ),
        ("PERM", rf"{_FAILED}[^\n]{{0,80}}\b(?:not permitted|not allowed|unauthori[sz]ed)\b"),
        (
            "C17",
            r"(?:checkpoint|weights?|snapshot|resume)\b[^\n]{0,60}(?:does ?n[o']t exi\w*t|missing"
            r"|not found|not exist)|\bno (?:\w+ ){0,2}(?:checkpoints?|weights?|snapshots?)\b",
        ),
        (
            "NODATA",
            r"(?:no|missing|empty|not(?: to be)? a single|zero) (?:\w+ ){0,2}(?:dataset|data"
            r"|images?|labels?|annotations?|samples?)\b|dataset\b[^\n]{0,40}\b(?:empty|missing)\b",
        ),
        (
            "BADFILE",
            rf"(?:corrupt\w*|malformed|truncated|unreadable) {_THING}(?:file|image|data|json"
            rf"|csv|sample|record)|{_FAILED} {_THING}(?:read|parse|decode|open|load) {_THING}"
            r"(?:image|video|audio|json|csv|data)\b",
        ),
        (
            "SHAPE",
            r"expected [^\n]{0,40}\b(?:tensor|dim|shape|dtype|numel)\b"
            r"|\b(?:tensors?|shapes?|dtypes?|dimensions?)\b[^\n]{0,60}"
            r"(?:mismatch|must|do(?:es)? not match|expected)",
        ),
        ("PY", r"\bassert\w* (?:failed|faild)\b"),
        (
            "U27",
            rf"please (?:set|specify|provide|pass|choose|give) (?:--|an? |the )|(?:invalid|unknown"
            rf"|unsupported|unrecognized|illegal) {_THING}(?:argument|option"
            rf"|parameter|config\w*|flag|setting|hyper-?parameter)|missing {_THING}"
            r"(?:argument|option|parameter|config\w*|setting)",
        ),
        (
            "MOD",
            rf"{_FAILED} {_THING}(?:import|link|compile|build)\b|\bimport\b[^\n]{{0,20}}\bfail"
            r"|(?:librar|packag|modul)\w+"
            r"[^\n]{0,40}(?:not found|missing|version mismatch)|incompatible version",
        ),
        (
            "NET",
            rf"{_FAILED}[^\n]{{0,60}}(?:\bconnect|network|download|fetch|resolv|time[d-]? ?out"
            r"|unreachable|https?://)"
            r"|(?:connection|network|download|request) (?:error|fail\w*|lost)",
        ),
    )
)


def subject_of_words(lines: Sequence[Line]) -> tuple[str, Line] | None:
    """The row and the line, from the last one up."""
    for line in reversed(lines[-_LAST:]):
        for id, pattern in _ROWS:
            if pattern.search(line.text):
                return id, line
    return None


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
