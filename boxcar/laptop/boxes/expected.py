"""What each answer of a box has to hold, checked before anybody relies on it.

A box is not trusted, and another version may answer. What is not as expected is one error of that
box: it hides no other, and no doubt becomes a success because a field was left out.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec


@dataclass(frozen=True)
class _File:
    path: str
    offset: int
    data: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class _Report:
    at: str
    is_tier_there: bool
    agents: dict[str, bool | None]
    attempts: tuple[str, ...]
    progress_at: dict[str, str]
    files: tuple[_File, ...]
    gone: tuple[str, ...]
    is_more: bool


@dataclass(frozen=True)
class _Slice:
    is_there: bool
    data: str
    offset: int
    size_bytes: int


@dataclass(frozen=True)
class _Release:
    is_there: bool
    problems: tuple[str, ...]


@dataclass(frozen=True)
class _Prepared:
    kept: str | None


@dataclass(frozen=True)
class _Started:
    by: str


@dataclass(frozen=True)
class _Delivered:
    left: int


@dataclass(frozen=True)
class _Ended:
    alive: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class _Place:
    is_there: bool
    is_writable: bool


@dataclass(frozen=True)
class _Places:
    data: _Place
    durable: _Place
    credentials: _Place


@dataclass(frozen=True)
class _Audit:
    at: str
    places: _Places
    training: dict[str, Any]
    tools: dict[str, Any]


_SHAPES: dict[str, type] = {
    "report": _Report,
    "log": _Slice,
    "release": _Release,
    "prepare": _Prepared,
    "start": _Started,
    "deliver": _Delivered,
    "end": _Ended,
    "audit": _Audit,
}


def check(box: str, ask: str, answered: dict[str, Any]) -> None:
    """Raise DamagedError, with the box and the field, for an answer that is not as expected."""
    shape = _SHAPES.get(ask)
    if shape is None:
        return
    where = f"{box}: its answer to {ask!r} is not as expected"
    found: object = codec.decode(shape, answered, where)
    for at in _times(found):
        try:
            timestamp.parse_utc(at)
        except ValueError as error:
            raise DamagedError(f"{where}: {error}") from None
    for data in _bytes(found):
        try:
            base64.b64decode(data, validate=True)
        except ValueError as error:
            raise DamagedError(f"{where}: data: {error}") from None


def _times(found: object) -> list[str]:
    if isinstance(found, _Report):
        return [found.at, *found.progress_at.values()]
    return [found.at] if isinstance(found, _Audit) else []


def _bytes(found: object) -> list[str]:
    if isinstance(found, _Report):
        return [file.data for file in found.files]
    return [found.data] if isinstance(found, _Slice) else []
