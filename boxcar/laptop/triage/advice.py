"""What is said of a failure by its id, as it stands in a journal or comes from a log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from boxcar.shared.errors import Command
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.triage.course_words import FOLLOWS, WHAT_TO_DO
from boxcar.shared.triage.evidence import CHANGE_FIRST, Cause, Course, Quote
from boxcar.shared.triage.ladders import LADDERS
from boxcar.shared.triage.signatures.agents_own import AGENTS_OWN
from boxcar.shared.triage.signatures.all_rows import BY_ID

PAGE = "docs/failures.md"
SCRIPTS_OWN = "PY"
# In journals an error of the script's own is named by its exit code.
_EXIT = re.compile(r"EXIT-?\d+")
_OWN = {own.id: own for own in AGENTS_OWN}
_LADDER_OF = {"M2": "memory", "M2f": "memory", "CUDNN": "memory", "NAN": "divergence"} | {
    "SCALER": "divergence",
    "ANOM": "divergence",
    "D19": "hang",
    "RDZV": "hang",
}
_TYPES = {
    Course.RESUME_SAME: "watch",
    Course.WAIT_NETWORK: "watch",
    Course.OTHER_BOX: "move --cell {cell} --queue QUEUE",
    Course.FREE_SPACE: "launch",
    Course.FIX_CONFIG: "launch",
    Course.FIX_CODE: "smoke --cell {cell}",
    Course.FIX_DATA: "launch",
    Course.OUT_OF_MEMORY: "launch",
    Course.PREEMPTED: "launch",
    Course.TIME_LIMIT: "launch",
    Course.STOP_QUEUE: "launch",
    Course.ASK: "logs --cell {cell}",
}


@dataclass(frozen=True)
class Advice:
    """`course` None: of a journal that does not say it, of a failure that has no row. `follows` is
    what Boxcar does next, `ladder` are steps to try, in their order.
    """

    id: str
    course: Course | None
    words: str
    follows: Sentence | None
    todo: Sentence | None
    types: Command
    ladder: tuple[Sentence, ...]
    link: str


def advice_of(
    id: str, course: Course | None = None, cell: str = "CELL", reason: str = ""
) -> Advice:
    """Of a failure by its id; `course` and `reason` are what is known of it otherwise: a person's
    own signature has no row.
    """
    row_id = SCRIPTS_OWN if id not in _OWN and _EXIT.fullmatch(id) else id
    row = BY_ID.get(row_id)
    known = row or _OWN.get(row_id)
    course = course or (known.course if known else None)
    follows = Sentence(FOLLOWS[course]) if course else None
    if known is None:
        name = (
            mark("the script failed with an error of its own")
            if course is Course.FIX_CODE
            else mark("unknown: no known failure matches")
        )
        words = reason or Sentence(name)
        return Advice(id, course, words, follows, None, _types("", course, cell), (), PAGE)
    return Advice(
        id,
        course,
        Sentence(known.words),
        follows,
        Sentence(known.todo or WHAT_TO_DO[known.course]),
        _types(row.types if row else "", course, cell),
        _ladder(row_id, course),
        f"{PAGE}#{row_id}",
    )


def all_ids() -> list[str]:
    return [*BY_ID, *_OWN]


def known_id(word: str) -> str:
    """The id that is spelled so, in capitals or not; '' where there is none."""
    if _EXIT.fullmatch(word.upper()):
        return word.upper()
    return next((id for id in all_ids() if id.lower() == word.lower()), "")


def ids_of_words(text: str) -> list[str]:
    """The failures of whose words, or of whose class, this is a part; `oom` are the class's
    initials.
    """
    wanted = text.lower()
    return [id for id in all_ids() if _is_said_of(wanted, advice_of(id))]


def _is_said_of(wanted: str, known: Advice) -> bool:
    words = (known.course.value if known.course else "").lower().split("_")
    if wanted == "".join(word[:1] for word in words):
        return True
    return len(wanted) > 2 and wanted in f"{known.words} {' '.join(words)}".lower()


def reason(id: str, text: str) -> str:
    """A reason as a journal has it, whose first words are those of its row: these in the language
    of who reads it, what the log said as it stands.
    """
    if id not in BY_ID or isinstance(text, Sentence):
        return text
    words = Sentence(BY_ID[id].words)
    if text == words:
        return words
    head, colon, quoted = text.partition(f"{words}: ")
    return _("{words}: {text}", words=words, text=quoted) if colon and not head else text


def is_to_change(failure: str) -> bool:
    """Whether its own row says what to change; a script's own error is told by its words alone."""
    return failure in BY_ID and advice_of(failure).course in CHANGE_FIRST


def _types(own: str, course: Course | None, cell: str) -> Command:
    line = own or (_TYPES[course] if course else "logs --cell {cell}")
    verb, *words = (cell if word == "{cell}" else word for word in line.split())
    return Command(verb, tuple(words))


def _ladder(id: str, course: Course | None) -> tuple[Sentence, ...]:
    name = _LADDER_OF.get(id) or ("host" if course is Course.OUT_OF_MEMORY else "")
    return tuple(map(Sentence, LADDERS[name][1])) if name else ()


# A verdict on a failure in lines: what it is, its evidence, what follows, what to do, what to type.


def verdict_lines(found: Advice, quotes: Sequence[Quote]) -> Iterator[Sentence]:
    if found.course is None:
        return
    about = {"course": found.course.value, "id": found.id or "?", "words": found.words}
    yield _("{course} ({id}): {words}", **about)
    yield from map(_quoted_evidence, quotes)
    yield _("what happens next: {text}", text=found.follows)
    if found.todo:
        yield _("what to do: {text}", text=found.todo)
    for number, step in enumerate(found.ladder, 1):
        yield _("  {n}. {text}", n=number, text=step)


def types_line(found: Advice) -> Iterator[Sentence]:
    """Where nothing else says what to type."""
    if found.course is not None:
        yield _("type: {text}", text=found.types.typed())


def _quoted_evidence(quote: Quote) -> Sentence:
    if quote.line:
        return _("  line {line} of the log: {text}", line=quote.line, text=quote.text)
    return _("  {text}", text=quote.text)


# A verdict on a failure as JSON: what it is, its evidence, what follows, what to do and type.


def verdict_document(found: Advice, quotes: Sequence[Quote]) -> dict[str, Any]:
    course = found.course.value if found.course else None
    return {
        "id": found.id or None,
        "class": course,
        "words": str(found.words),
        "evidence": [{"line": one.line, "text": one.text} for one in quotes],
        "follows": str(found.follows) if found.follows else None,
        "todo": str(found.todo) if found.todo else None,
        "type": found.types.typed("invoke"),
        "ladder": [str(step) for step in found.ladder],
        "more": found.link,
    }


# A signature of a person's own as YAML, made from how a log ended; to be read before it counts.


_HEAD = (
    "# Signatures of your own: they come before Boxcar's. About them: boxcar explain failures\n"
    "signatures:\n"
)
_LONGEST_PATTERN = 200
_ID = re.compile(r"^  - id: OWN-(\d+)$", re.MULTILINE)


def added_row(before: str, cause: Cause) -> str:
    """The file with one row more at its end."""
    text = before if before.strip() else _HEAD
    number = 1 + max((int(found) for found in _ID.findall(text)), default=0)
    rows = (
        f"  - id: OWN-{number}",
        f"    follows: {cause.course.value}",
        f"    pattern: {_quoted(pattern_of(cause.quotes[0].text))}",
        f"    words: {_quoted(cause.quotes[0].text[:_LONGEST_PATTERN])}",
        "    todo: ''",
    )
    return "\n".join([text.rstrip("\n"), *rows]) + "\n"


def pattern_of(line: str) -> str:
    """The line as an expression in which numbers and addresses may be others."""
    parts = re.split(r"(0x[0-9a-fA-F]+|\d+)", line.partition(" / ")[0].strip())
    spelled = [
        r"\w+" if at % 2 else re.escape(part).replace("\\ ", " ") for at, part in enumerate(parts)
    ]
    while spelled and sum(map(len, spelled)) > _LONGEST_PATTERN:
        spelled.pop()
    return "".join(spelled)


def _quoted(text: str) -> str:
    """As YAML's single quotes take it, in one line."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split(" "))
    return "'" + line.replace("'", "''") + "'"
