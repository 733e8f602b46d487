"""The tracebacks of a log: those of each rank, chained ones as one, and which were survived."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from boxcar.shared.record import dataclass
from boxcar.shared.triage.log_lines import WARNING, Line

_HEAD = re.compile(r"(Original )?Traceback \(most recent call last\)")
_LINK = re.compile(
    r"During handling of the above exception|The above exception was the direct cause"
)
# Python says of these itself that it goes on.
_IGNORED = re.compile(r"Exception ignored in|--- Logging error ---")
_BESIDE = re.compile(r"Exception in thread |Error in atexit|Error in sys\.excepthook")
# A line of another record ends the words of an exception.
_RECORD = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d|\[(?:\d{4}|rank|INFO|WARN|ERROR)|(?:INFO|WARN(?:ING)?|ERROR|DEBUG)\b"
    r"|wandb: |[IWEF]\d{4} |[=*-]{5,}|srun: |slurmstepd|terminate called|\d+%\||Exception in thread"
)
_BARE = re.compile(
    r"(?:\*\*\* )?(?:(?:[a-zA-Z_]\w*\.)*"
    r"(?:[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Timeout)|Exception)(?::|$)"
    r"|(?:[a-z_]\w*\.)+_?[A-Z]\w*: )"
)
# C++ says first of what type it was, and on the next line what it says.
_THROWN = re.compile(r"terminate called after throwing an instance of '([\w:]+)")
_WHAT = re.compile(r"\bwhat\(\): +(\S.*)")
# Python's own, and that of rich.
_FRAME = re.compile(r'File "|│ \S+\.pyx?:\d+ in')
_MOST_WORDS = 24
PROGRESS_AFTER = 2
# pip shows what a build said, and then says itself what failed.
_OF_PIP = "[end of output]"


@dataclass(frozen=True)
class Raised:
    """An exception: where its words begin, all of them, and the last frame with its code."""

    number: int
    words: str
    frame: str = ""

    @property
    def first(self) -> str:
        return self.words.partition("\n")[0]


@dataclass(frozen=True)
class Traceback:
    """Of one exception with those that led to it, the last one last. `is_survived`: what was
    written after it shows that the script went on, or what was before it calls it a warning.
    """

    chain: tuple[Raised, ...]
    rank: int | None
    is_survived: bool

    @property
    def last(self) -> Raised:
        return self.chain[-1]


def tracebacks(lines: Sequence[Line]) -> list[Traceback]:
    """All of them, in the order in which they ended."""
    streams: dict[int | None, list[Line]] = {}
    for line in lines:
        streams.setdefault(line.rank, []).append(line)
    found = [one for stream in streams.values() for one in _of_stream(stream)]
    return sorted(found, key=lambda one: one.last.number)


def bare_errors(lines: Sequence[Line]) -> list[Raised]:
    """Lines that look like an exception's, without their traceback."""
    found = (_bare(lines, at) for at, line in enumerate(lines) if not line.is_warning)
    return [raised for raised in found if raised]


def _bare(lines: Sequence[Line], at: int) -> Raised | None:
    number, text = lines[at].number, lines[at].text
    if "what():" in text and (what := _WHAT.search(text)):
        thrown = _THROWN.search(lines[at - 1].text) if at else None
        return Raised(number, "\n".join([what[1], *(thrown.groups() if thrown else ())]))
    if _BARE.match(text.strip()):
        words = _words(lines[at : at + _MOST_WORDS])
        return Raised(number, "\n".join(words), _frame_before(lines, at))
    return None


def headless(lines: Sequence[Line], errors: Sequence[Raised]) -> list[Traceback]:
    """Those whose beginning was cut off: an exception below a frame, where none has its head."""
    if any(_HEAD.search(line.text) for line in lines):
        return []
    return [
        Traceback((one,), None, False) for one in errors if one.frame and _OF_PIP not in one.words
    ]


def _frame_before(lines: Sequence[Line], at: int) -> str:
    before = [line.text.strip() for line in lines[max(0, at - 3) : at]]
    files = [n for n, text in enumerate(before) if text.startswith("File ")]
    return "\n".join(before[files[-1] :][:2]) if files else ""


def _of_stream(lines: Sequence[Line]) -> Iterator[Traceback]:
    at = 0
    # Of a line how many of those after it tell of progress.
    left = sum(line.is_progress for line in lines)
    seen = 0
    while at < len(lines):
        if not _HEAD.search(lines[at].text):
            seen += lines[at].is_progress
            at += 1
            continue
        begin = at
        chain, at = _chain(lines, at)
        chain = [*_led_to(lines, begin), *chain]
        seen += sum(line.is_progress for line in lines[begin:at])
        before = next(
            (one.text for one in reversed(lines[max(0, begin - 3) : begin]) if one.text.strip()), ""
        )
        if not chain or _IGNORED.search(before):
            continue
        is_survived = (
            left - seen >= PROGRESS_AFTER
            or _is_by_the_way(before, lines[begin].text)
            or any(_OF_PIP in line.text for line in lines[begin : at + 3])
        )
        yield Traceback(tuple(chain), lines[begin].rank, is_survived)


def _led_to(lines: Sequence[Line], head: int) -> list[Raised]:
    """The exception before a link whose own head was cut off with the log's beginning."""
    before = [line for line in lines[max(0, head - 6) : head] if line.text.strip()]
    if len(before) < 2 or not _LINK.search(before[-1].text):
        return []
    said = before[-2]
    return [Raised(said.number, said.text.strip())] if _BARE.match(said.text.strip()) else []


def _is_by_the_way(before: str, head: str) -> bool:
    said = f"{before}\n{head}"
    # torchrun warns of the signals that it sends, and then raises.
    return bool(_BESIDE.search(said) or (WARNING.search(said) and "closing signal" not in before))


def _chain(lines: Sequence[Line], at: int) -> tuple[list[Raised], int]:
    chain: list[Raised] = []
    while True:
        raised, at = _one(lines, at)
        if raised:
            chain.append(raised)
        ahead = _next_said(lines, at)
        if ahead is None:
            return chain, at
        head = _HEAD.search(lines[ahead].text)
        if head and head[1]:
            at = ahead
        elif _LINK.search(lines[ahead].text):
            after = _next_said(lines, ahead + 1)
            if after is None or not _HEAD.search(lines[after].text):
                return chain, at
            at = after
        else:
            return chain, at


def _next_said(lines: Sequence[Line], at: int) -> int | None:
    return next((i for i in range(at, min(at + 5, len(lines))) if lines[i].text.strip()), None)


def _one(lines: Sequence[Line], head: int) -> tuple[Raised | None, int]:
    """The exception below this head, and where its words end."""
    strip = _Prefix(lines[head].text)
    base = _indent(strip(lines[head].text))
    at, frame = head + 1, ""
    while at < len(lines) and _is_frame(strip(lines[at].text), base):
        said = strip(lines[at].text).strip()
        # Its place, and the code that stands there: what is written in C has no place of its own.
        is_code = frame.count("\n") == 0 and said.strip("^~ ")
        frame = said if _FRAME.match(said) else f"{frame}\n{said}" if is_code else frame
        at += 1
    if at >= len(lines) or _HEAD.search(lines[at].text):
        return None, at
    begin = at
    words = _words(lines[at : at + _MOST_WORDS], strip)
    return Raised(lines[begin].number, "\n".join(words), frame), at + len(words)


def _words(lines: Sequence[Line], strip: Callable[[str], str] = str) -> list[str]:
    """Of an exception whose first words the first line has."""
    words = [strip(lines[0].text).strip()]
    for line in lines[1:_MOST_WORDS]:
        if not _goes_on(strip(line.text), words):
            break
        words.append(strip(line.text).strip())
    return words


class _Prefix:
    """What a launcher or a logger puts before each line of a traceback, taken off."""

    def __init__(self, head: str) -> None:
        before = head[: _HEAD.search(head).start()]  # type: ignore[union-attr]
        is_label = "traceback" in before.lower() or "│" in before or "╭" in before
        self._shape = "" if is_label or not before.strip() else _shape(before)

    def __call__(self, text: str) -> str:
        size = len(self._shape)
        return text[size:] if size and _shape(text[:size]) == self._shape else text


def _shape(text: str) -> str:
    return re.sub(r"\d", "0", text)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_frame(text: str, base: int) -> bool:
    stripped = text.strip()
    return (
        not stripped
        or _indent(text) > base
        or stripped[0] in "│╭╰❱^~"
        or stripped.startswith("[Previous line")
    )


def _goes_on(text: str, words: Sequence[str]) -> bool:
    stripped = text.strip()
    if not stripped:
        # The words of a hub and of a compiler have empty lines in them.
        return words[-1] != "" and any(
            mark in words[0] for mark in ("Client Error", "Server Error", "http")
        )
    is_next = (
        _RECORD.match(stripped)
        or _HEAD.search(stripped)
        or _LINK.search(stripped)
        or _BARE.match(stripped)
    )
    return not (is_next or WARNING.search(stripped))
