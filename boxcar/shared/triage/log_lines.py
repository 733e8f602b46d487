"""A log as lines that can be judged: without colours, progress bars, and what names their rank."""

from __future__ import annotations

import re
from dataclasses import replace

from boxcar.shared.record import dataclass

LONGEST_LINE = 2000
MOST_LINES = 20_000
# What a library sets around words for a terminal would split what is looked for, and be shown.
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\n]{0,200}\x07")
# torch, torchrun --tee, srun -l, mpirun, Ray and Kubernetes' own logs.
_RANK = re.compile(
    r"\s*(?:\[(?:[\w.-]*rank ?|default)(\d+)\]:?|(\d{1,4}):(?= )"
    r"|\[(?:\d+,)?(\d+)\]<std(?:err|out)>:?"
    r"|\((?:[\w.:]+ )?pid=(\d+)(?:, [^)]{1,80})?\)) ?"
)
_STAMP = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:\d\d) (?:std(?:err|out) [FP] )?"
)
PROGRESS = re.compile(
    r"\d+%\||\d(?:it/s|s/it)\b|\b(?:[Ee]poch|[Ss]tep|[Ii]ter(?:ation)?|[Ll]oss|EPOCH"
    r"|STEP)\b[^\n]{0,40}?\d"
)
WARNING = re.compile(
    r"\bWARN(?:ING)?\b|Warning:|^W\d{4} |^\[W[\d ]|\b[Ww]arn(?:ing)?\b[:\]]|^\W{0,3}[Ww]arning "
    r"|(?<![=\w])INFO\b"
    r"|\bDEBUG\b|^I\d{4} "
    r"|[Dd]eprecat|\b[Rr]etry(?:ing)?\b"
    r"|\b[Ss]kipp(?:ed|ing)\b|\b[Ii]gnor(?:ed|ing)\b|\b[Cc]ontinuing\b|[Ff]alling back"
    r"|\b[Ff]allback\b|will be retried|from scratch|, using |initiali[sz]\w+ (?:anew|randomly)"
    r"|non-fatal|\boptional\b"
)
# NCCL calls its errors warnings.
_NO_WARNING = re.compile(r"\bNCCL WARN\b|\] \S+\.\w{1,2}:\d+ WARN\b|NVRM: |\bFATAL\b|\bCRITICAL\b")


@dataclass(frozen=True)
class Line:
    """`number` is its place in the log, from 1; `rank` who wrote it, where that is said."""

    number: int
    text: str
    rank: int | None = None

    @property
    def is_warning(self) -> bool:
        return bool(WARNING.search(self.text)) and not _NO_WARNING.search(self.text)

    @property
    def is_progress(self) -> bool:
        return bool(PROGRESS.search(self.text))


def without_colours(text: str) -> str:
    return _COLOURS.sub("", text)


# As a shell in another language, a web page or a chat has made them of plain ones.
_QUOTES = str.maketrans("‘’“”", "''\"\"")


def lines_of(text: str, first: int = 1) -> list[Line]:
    """The last of them; `first` is the number of the text's first line, 0 where nobody knows."""
    rows = text.split("\n")
    cut = max(0, len(rows) - MOST_LINES)
    numbered = enumerate(rows[cut:], first + cut)
    found = [_line(number, part) for number, row in numbered for part in _parts(row)]
    return found if first else [replace(line, number=0) for line in found]


def _parts(row: str) -> list[str]:
    """Of a log in JSON the lines of a traceback that one record holds."""
    begin = row[: 4 * LONGEST_LINE]
    is_record = "Traceback (most recent call last):\\n" in begin
    return begin.replace('\\"', '"').split("\\n") if is_record else [row]


def _line(number: int, row: str) -> Line:
    begin = row[: 4 * LONGEST_LINE]
    # Bytes of a binary file, such as a script that prints one; each costs more than a text.
    text = "" if begin.count("\ufffd") * 3 > len(begin) else without_colours(begin).rstrip("\r ")
    # Of a progress bar its last state; a carriage return in a shell's complaint stays.
    if "\r" in text and "%|" in text:
        text = text.rpartition("\r")[2]
    text = _STAMP.sub("", text, count=1).translate(_QUOTES)
    if found := _RANK.match(text):
        rank = next(int(one) for one in found.groups() if one)
        return Line(number, text[found.end() :][:LONGEST_LINE], rank)
    return Line(number, text[:LONGEST_LINE])
