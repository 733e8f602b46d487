"""What the last lines of a log are about, where no row knows them: a word of memory, of a disk.

Only an end is looked at: earlier lines tell of what the script survived.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from boxcar.shared.triage.log_lines import Line

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
