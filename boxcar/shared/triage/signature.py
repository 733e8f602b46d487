"""One kind of failure, as data: by what it is known, what follows, what a person reads of it."""

from __future__ import annotations

import enum
import re
from functools import cached_property

from boxcar.shared.record import dataclass
from boxcar.shared.triage.evidence import Course


class Where(enum.Enum):
    """Where its words may stand to count.

    ERROR: in the words of the exception that ended the script. END: there, or in a line that is no
    warning. LINE: only in such a line. ANYWHERE: in any line, as a platform's or a driver's words
    are decisive wherever they stand.
    """

    ERROR = "error"
    END = "end"
    LINE = "line"
    ANYWHERE = "anywhere"


@dataclass(frozen=True)
class Signature:
    """`waits_s`: how long to wait before each further attempt. `is_symptom`: it tells that another
    rank failed, and yields to whatever says why. `is_general`: a family, which yields to a row that
    names the cause. `explained_by` are rows that say why, where they stand in a line. `words` and
    `todo`, what to do about it, are templates of sentences; `types` is what to type, where not the
    course's.
    """

    id: str
    course: Course
    expression: str
    words: str
    todo: str = ""
    types: str = ""
    where: Where = Where.END
    waits_s: tuple[float, ...] = ()
    is_symptom: bool = False
    is_general: bool = False
    explained_by: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when it is asked for: all of them take longer than a verb's other imports."""
        # In ASCII an English word begins and ends where it touches a Chinese one.
        return re.compile(self.expression, re.MULTILINE | re.ASCII)


def cuda_error(numbers: str) -> str:
    """A CUDA error by its bare number, as extensions write it."""
    return rf"\b(?:CUDA|cuda)[ _a-zA-Z]{{0,24}}[Ee]rror(?: code)?[ :=(]{{1,3}}(?:{numbers})\b(?!\.)"


# Slurm's own words of a job begin so: of 22.05, with a node's name, and of 26.05.
STEPD = r"(?:slurmstepd(?:-\S+)?:|\[\d{4}-\d\d-\d\dT[\d:.]+\]) error: "
