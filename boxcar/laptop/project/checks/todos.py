"""The open TODOs of job.yaml, as `init` leaves them: what it could not know, and a person has to
say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from boxcar.shared.errors import Command, InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# A wrong one is seen only after a whole training, or not at all.
COSTLY = ("artifacts", "launcher", "resume", "resume_args")
_OPEN = re.compile(r"(?:^|(?<=\s))(?P<mark>#)[ \t]*TO ?DO\b:?(?P<text>.*)$", re.MULTILINE)
_KEY = re.compile(r"([a-z_]+)\s*:")


@dataclass(frozen=True)
class Todo:
    """`at` is its line in the file, `key` the key of the job that it is about."""

    at: str
    key: str
    text: str


def of_job(path: Path) -> list[Todo]:
    """Those of a job.yaml that was read before. Raises OSError."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    return list(_find(path, text))


def _find(path: Path, text: str) -> Iterator[Todo]:
    lines, values = text.splitlines(), _values(text)
    for found in _OPEN.finditer(text):
        at = found.start("mark")
        if not any(at in span for span in values):
            said, above = found.group("text").strip(), text.count("\n", 0, at)
            yield Todo(f"{path}:{above + 1}", _key(said, lines, above), said)


def _values(text: str) -> list[range]:
    """Where texts stand, whose # begins no comment."""
    tokens = yaml.scan(text, Loader=yaml.SafeLoader)
    scalars = (token for token in tokens if isinstance(token, yaml.ScalarToken))
    return [range(token.start_mark.index, token.end_mark.index) for token in scalars]


def _key(text: str, lines: list[str], at: int) -> str:
    """The one that it begins with; else that of its own line, or of the next one that has any."""
    if (named := re.match(r"[a-z_]+", text)) and named.group() in COSTLY:
        return named.group()
    typed = (number for number in range(at, len(lines)) if _is_typed(lines[number]))
    first = next(typed, at)
    above = (_KEY.match(lines[number]) for number in range(first, -1, -1))
    return next((found.group(1) for found in above if found), "")


def _is_typed(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def notes(path: Path) -> list[str]:
    return [_("{at}: an open TODO: {text}", at=todo.at, text=todo.text) for todo in of_job(path)]


def refuse_costly(path: Path) -> None:
    """Raises InputError for those that a billed machine is not to find out."""
    problems = [
        _(
            "{at}: an open TODO of {key}: {text}. This platform bills, and a mistake here would "
            "show only after a whole training. Correct it, remove the comment, then",
            at=todo.at,
            key=todo.key,
            text=todo.text,
        )
        for todo in of_job(path)
        if todo.key in COSTLY
    ]
    if problems:
        raise InputError(problems, Command("launch"))
