"""A log as lines that can be judged: without colours, progress bars, and what names their rank."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import BinaryIO

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


# The end of a log, with the place where it begins in it.


_CHUNK_BYTES = 1024 * 1024
_USUAL = "utf-8"
# Where more is before it, nobody counts: a place in the log is not worth seconds of a queue.
_MOST_COUNTED_BYTES = 1024**3


@dataclass(frozen=True)
class Tail:
    """`begins_at_line`: the number of its first line in the cell's log, 0 where nobody counted."""

    text: str = ""
    begins_at_line: int = 1


def tail_of_file(file: BinaryIO, begin: int = 0, longest_bytes: int = 1024 * 1024) -> Tail:
    """Its end from the byte `begin` on; a log that somebody has cut is taken whole."""
    file.seek(0)
    encoding = _encoding(file.read(2))
    size_bytes = file.seek(0, os.SEEK_END)
    at = max(begin if begin <= size_bytes else 0, size_bytes - longest_bytes)
    at += at % 2 if encoding != _USUAL else 0
    first = _lines_before(file, at)
    file.seek(at)
    return Tail(_text(file.read(longest_bytes), encoding), first)


def _lines_before(file: BinaryIO, at: int) -> int:
    if at > _MOST_COUNTED_BYTES:
        return 0
    file.seek(0)
    count, left = 1, at
    while left > 0 and (data := file.read(min(_CHUNK_BYTES, left))):
        count += data.count(b"\n")
        left -= len(data)
    return count


def tail_of_stream(file: BinaryIO, longest_bytes: int) -> Tail:
    """Of what can be read once only."""
    kept, first, encoding = b"", 1, ""
    while data := file.read(_CHUNK_BYTES):
        kept += data
        encoding = encoding or _encoding(kept[:2])
        over = len(kept) - longest_bytes
        if over > 0:
            over += over % 2
            first += kept[:over].count(b"\n")
            kept = kept[over:]
    return Tail(_text(kept, encoding or _USUAL), first)


def _encoding(head: bytes) -> str:
    """By a file's first two bytes: what PowerShell writes with > is UTF-16."""
    return {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(head, _USUAL)


def _text(data: bytes, encoding: str) -> str:
    """Without what a file with holes has in them: one that was cut while a program wrote it."""
    return without_colours(data.decode(encoding, "replace").replace("\0", "").lstrip("\ufeff"))
