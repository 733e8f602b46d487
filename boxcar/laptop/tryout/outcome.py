"""How a cell's try ended, and why one that ended with 0 may be no pass."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from boxcar.laptop.tryout.code_copy import Written
from boxcar.shared.errors import some
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

PASSED, BEFORE, FAILED, TIMED_OUT = "passed", "passed before", "failed", "timed out"
MOST_NAMED = 3


@dataclass(frozen=True)
class FoundNumber:
    """What one of the job's `metrics` took, and from which line or row."""

    value: float
    where: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How one cell's try ended. `like`: the cell that was run in its place, as it is the same.

    `lacks`: the artifacts that it did not write; `beside`: what it wrote beside its code instead of
    into {out}. `by_hand`: what to type to see a failure again; `hints`: what may be the matter.
    `again`: why it was tried a second time. `wrote`: files in {out}, where an artifact is lacking.
    `reserved`: what artifacts mean and a box leaves out, as Boxcar uses these names itself.
    `numbers`: what was found of `metrics`, by name; `no_number`: why there is none. `others`: other
    artifacts that it wrote where one is lacking, or what looks like one.
    """

    cell: str
    word: str
    why: str = ""
    seconds: float | None = None
    lacks: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    like: str | None = None
    log: str | None = None
    by_hand: str | None = None
    hints: tuple[str, ...] = ()
    again: str = ""
    wrote: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    no_number: dict[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    numbers: dict[str, FoundNumber] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        return self.word in (PASSED, BEFORE)


def try_fault(
    written: Written, command: Sequence[str], *, is_in_out: bool, has_left_anything: bool
) -> str:
    """Why a try that ended with 0 is no pass; '' where it is one.

    `command` is as job.yaml has it. `is_in_out`: it began in {out}. `has_left_anything`: a file
    there, or a line of log.
    """
    if written.changed:
        changed = some(written.changed, MOST_NAMED)
        return _(
            "it changed {changed} of its own code, which a box refuses (CODE)", changed=changed
        )
    if written.strays:
        places = some([f"./{path}" for _, path in written.strays], MOST_NAMED)
        way_out = _("set workdir: out in job.yaml")
        if is_in_out:
            way_out = _("write it into {{out}}")
        elif folder := _named(command, [path for _, path in written.strays]):
            way_out = _("in command, write {{out}} in place of {folder}", folder=folder)
        return _(
            "your script wrote {places} beside its code, not into {{out}}: {way_out}",
            places=places,
            way_out=way_out,
        )
    if not has_left_anything:
        return _("it exited with 0, but left no file in {{out}} and no line in its log")
    return ""


def _named(command: Sequence[str], paths: Sequence[str]) -> str:
    """The word of the command, or the value of a flag, that is the folder of all of these."""
    for word in command:
        value = word.rpartition("=")[2]
        folder = value.removeprefix("./").rstrip("/")
        if folder and all(path.startswith(f"{folder}/") for path in paths):
            return value
    return ""


def try_note(item: Outcome) -> str:
    """What a table says of it beyond its result."""
    parts = [item.why]
    if item.is_good:
        parts += _of_files(mark("did not write {files}"), item.lacks) + _of_files(
            mark("but wrote {files}"), item.wrote
        )
        parts += _of_files(mark("wrote {files} beside its code"), item.beside) + _of_files(
            mark("{files}: reserved names of Boxcar"), item.reserved
        )
    parts += [item.again] if item.again else []
    parts += [_("the same as {cell}", cell=item.like)] if item.like else []
    said = [part for part in parts if part]
    return functools.reduce(_and, said) if said else ""


def _of_files(template: str, files: tuple[str, ...]) -> list[str]:
    return [Sentence(template, files=some(files, MOST_NAMED))] if files else []


def _and(first: str, second: str) -> str:
    return _("{first}; {second}", first=first, second=second)
