"""failures.yaml beside job.yaml: a person's own signatures, which come before all others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from boxcar.laptop.common import yaml_models
from boxcar.laptop.common.yaml_models import Model
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import OwnSignature
from boxcar.shared.triage.course import Course
from boxcar.shared.triage.signatures.agents_own import AGENTS_OWN
from boxcar.shared.triage.signatures.all_rows import BY_ID

NAME = "failures.yaml"
MOST = 50
_LONGEST = 400
_ID = re.compile(r"[A-Z][A-Z0-9_-]{1,31}")
_TAKEN = {*BY_ID, *(own.id for own in AGENTS_OWN)}
# What a person's row may ask for; that a box is given up or a training is over is not said by one.
Follows = Literal[
    "RESUME_SAME",
    "WAIT_NETWORK",
    "OTHER_BOX",
    "FREE_SPACE",
    "FIX_CONFIG",
    "FIX_CODE",
    "FIX_DATA",
    "OUT_OF_MEMORY",
    "STOP_QUEUE",
    "ASK",
]
_WAITS_S = {Course.RESUME_SAME: (30.0, 300.0), Course.WAIT_NETWORK: (60.0, 300.0, 900.0)}


def _id(text: str) -> str:
    if not _ID.fullmatch(text) or text.startswith("EXIT"):
        raise ValueError(f"the id {text!r} may hold capital letters, digits, _ and -: STORE-LOCKED")
    if text in _TAKEN:
        raise ValueError(f"{text!r} is the id of a row of Boxcar's own: take another one")
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    if not text or len(text) > _LONGEST:
        raise ValueError(f"expected 1 to {_LONGEST} characters, found {len(text)}")
    return text


class OwnRow(Model):
    id: Annotated[str, AfterValidator(_id)]
    follows: Follows
    pattern: Annotated[str, AfterValidator(_expression)]
    words: Annotated[str, Field(min_length=1, max_length=_LONGEST)]
    todo: Annotated[str, Field(max_length=_LONGEST)] = ""

    def planned(self) -> OwnSignature:
        waits_s = _WAITS_S.get(Course(self.follows), ())
        return OwnSignature(self.id, self.follows, self.pattern, self.words, self.todo, waits_s)


class FailuresFile(Model):
    signatures: Annotated[tuple[OwnRow, ...], Field(max_length=MOST)] = ()


def read_failures_file(root: Path) -> tuple[OwnSignature, ...]:
    """Those of the project, in their order; none where there is no such file. Raises InputError."""
    path = root / NAME
    if not path.exists():
        return ()
    return _checked(yaml_models.load(path, FailuresFile), str(path))


def parse(data: bytes, where: str) -> tuple[OwnSignature, ...]:
    return _checked(yaml_models.parse(data, where, FailuresFile), where)


def _checked(found: FailuresFile, where: str) -> tuple[OwnSignature, ...]:
    ids = [row.id for row in found.signatures]
    twice = sorted({id for id in ids if ids.count(id) > 1})
    if twice:
        raise InputError(f"{where}: the id {twice[0]} is there twice: give one another name")
    return tuple(row.planned() for row in found.signatures)
