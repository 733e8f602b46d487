"""What is said of a failure by its id, as it stands in a journal or comes from a log."""

from __future__ import annotations

import re

from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.message import Command
from boxcar.shared.record import dataclass
from boxcar.shared.triage.course import CHANGE_FIRST, Course
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
    Course.FIX_CONFIG: "push",
    Course.FIX_CODE: "smoke --cell {cell}",
    Course.FIX_DATA: "launch",
    Course.OUT_OF_MEMORY: "push",
    Course.PREEMPTED: "launch",
    Course.TIME_LIMIT: "push",
    Course.STOP_QUEUE: "launch",
    Course.ASK: "logs --cell {cell}",
}


@dataclass(frozen=True)
class Advice:
    """`course` None: of a journal that does not say it, of a failure that has no row. `ladder` are
    steps to try, in their order.
    """

    id: str
    course: Course | None
    words: str
    todo: Sentence | None
    types: Command
    ladder: tuple[Sentence, ...]
    link: str


def advice_of(id: str, course: Course | None = None, cell: str = "CELL", reason: str = "") -> Advice:
    """Of a failure by its id; `course` and `reason` are what is known of it otherwise: a person's
    own signature has no row.
    """
    row_id = SCRIPTS_OWN if id not in _OWN and _EXIT.fullmatch(id) else id
    row = BY_ID.get(row_id)
    known = row or _OWN.get(row_id)
    course = course or (known.course if known else None)
    if known is None:
        name = "triage.own_error" if course is Course.FIX_CODE else "triage.unknown"
        words = reason or Sentence(name)
        return Advice(id, course, words, None, _types("", course, cell), (), PAGE)
    return Advice(
        id,
        course,
        Sentence(f"triage.is.{row_id}"),
        Sentence(f"triage.do.{row_id}"),
        _types(row.types if row else "", course, cell),
        _ladder(row_id, course),
        f"{PAGE}#{row_id}",
    )


def reason(id: str, text: str) -> str:
    """A reason as a journal has it, whose first words are those of its row: these in the language
    of who reads it, what the log said as it stands.
    """
    if id not in BY_ID:
        return text
    words = Sentence(f"triage.is.{id}")
    if text == words:
        return words
    head, colon, quoted = text.partition(f"{words}: ")
    return Sentence("triage.reason", words=words, text=quoted) if colon and not head else text


def is_to_change(failure: str) -> bool:
    """Whether its own row says what to change; a script's own error is told by its words alone."""
    return failure in BY_ID and advice_of(failure).course in CHANGE_FIRST


def _types(own: str, course: Course | None, cell: str) -> Command:
    line = own or (_TYPES[course] if course else "logs --cell {cell}")
    verb, *words = (cell if word == "{cell}" else word for word in line.split())
    return Command(verb, tuple(words))


def _ladder(id: str, course: Course | None) -> tuple[Sentence, ...]:
    name = _LADDER_OF.get(id) or ("host" if course is Course.OUT_OF_MEMORY else "")
    steps = LADDERS[name][1] if name else ()
    return tuple(Sentence(f"triage.ladder.{name}.{number}") for number in range(len(steps)))
