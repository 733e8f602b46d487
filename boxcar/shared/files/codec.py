"""Frozen dataclasses to JSON documents and back, with the types checked at the edge.

A document is a JSON object whose `format` says what it is and in which version, such as
`boxcar.manifest/1`. A reader takes its own version and the one before. Fields that it does not know
are kept in `extra` and written back, so that an old program never thins a newer one's file. From
the version CHECKED_SINCE of its class on, where it has one, a document ends in a check of itself.

The questions and answers of shared/wire are spelled the same way, without `format`. They have two
more kinds of fields, which no document has: `bytes`, spelled as base64, and `Annotated` ones, whose
rules raise ValueError for a value that is none.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from boxcar.shared import event_words
from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import journal_chain
from boxcar.shared.sentence import _

T = TypeVar("T")

EXTRA = "extra"
# The metadata of a field that a version got later: it is written only where it says something, so
# that rewriting an old file does not change it.
LATER = {"later": True}
# Of these the last few are remembered: records are never changed.
_SMALL_BYTES = 4096
# By the id of a hint, which no other one gets while the hint stands here too. They are parts of
# what `_hints` keeps.
_PARTS: dict[int, tuple[Any, Any, tuple[Any, ...]]] = {}
_SEAL = journal_chain.Seal(b',\n "check": "', b'"\n}\n')


def to_document(record: Any) -> bytes:
    """A dataclass with FORMAT and VERSION as one JSON document, ending in a line feed."""
    head = {"format": f"boxcar.{record.FORMAT}/{record.VERSION}"}
    # Head again: a field of that name that was kept must not take its place.
    document = head | finite(encode(record)) | head
    if said := event_words.sentences_in(document):
        document[event_words.SENTENCES] = said
    is_checked = _is_checked(record, record.VERSION)
    if is_checked:
        document.pop(journal_chain.FIELD, None)
    spelled = json.dumps(document, indent=1, ensure_ascii=False)
    # Half a surrogate pair, from a file name that is no UTF-8, is written as JSON's escape of it.
    data = spelled.encode(errors="backslashreplace")
    return _SEAL.put(data.removesuffix(b"\n}")) if is_checked else data + b"\n"


def from_document(cls: type[T], data: bytes, where: str) -> T:
    """The inverse of `to_document`. Raises DamagedError that names `where` and the field."""
    if len(data) <= _SMALL_BYTES:
        with contextlib.suppress(DamagedError):  # which is to name where these bytes lie
            kind: Any = cls
            record: T = _of_small(kind, data)
            return record
    return _from_document(cls, data, where)


@functools.lru_cache(maxsize=8)
def _of_small(cls: Any, data: bytes) -> Any:
    """The same bytes lie on the tier and here, and are asked for again and again in one look."""
    return _from_document(cls, data, "")


def _from_document(cls: type[T], data: bytes, where: str) -> T:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedError(
            _("{where}: not a JSON document: {error}", where=where, error=error)
        ) from error
    if not isinstance(value, dict):
        raise DamagedError(
            _(
                "{where}: expected a JSON object, found {name}",
                where=where,
                name=type(value).__name__,
            )
        )
    value = event_words.hear_in(value, value.pop(event_words.SENTENCES, None))
    if _is_checked(cls, _version(cls, value.pop("format", None), where)):
        value.pop(journal_chain.FIELD, None)
        if not _SEAL.fits(data):
            raise DamagedError(_("{where}: its check is not that of its bytes", where=where))
    return decode(cls, value, where)


def encode(value: Any, text_of: Callable[[Any], str | None] | None = None) -> Any:
    """Dataclasses become objects, tuples become lists, bytes become base64, and what
    `text_of` has a text for, that text; everything else stays as it is.
    """
    if text_of and (text := text_of(value)) is not None:
        return text
    if dataclasses.is_dataclass(value):
        known = {
            field.name: encode(getattr(value, field.name), text_of)
            for field in dataclasses.fields(value)
            if field.name != EXTRA and not _is_silent(field, getattr(value, field.name))
        }
        return known | dict(getattr(value, EXTRA, {}))
    if isinstance(value, Mapping):
        return {key: encode(item, text_of) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item, text_of) for item in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def finite(value: Any) -> Any:
    """The value as JSON that everybody reads: a loss that became NaN is written as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def decode(cls: type[T], value: object, where: str) -> T:
    """A `cls` from a JSON object, each field checked against its annotation.

    Raises DamagedError that names `where` and the field, but never a value: it may be a secret.
    """
    return _decode_object(cls, value, where, f"{where}: ")


def _decode_object(cls: type[T], value: object, where: str, prefix: str) -> T:
    """`prefix` stands before the name of a field: `here.json: ` and then `here.json: files[0].`"""
    if not isinstance(value, dict):
        raise DamagedError(
            _("{where}: expected an object, found {value}", where=where, value=_kind(value))
        )
    hints = _hints(cls)  # type: ignore[arg-type]
    found: dict[str, Any] = {}
    for name, is_required in _fields(cls):  # type: ignore[arg-type]
        if name in value:
            hint, item = hints[name], value[name]
            # As nearly all are: without a name for the place of each.
            is_plain = type(item) is hint
            found[name] = item if is_plain else _decode_as(hint, item, f"{prefix}{name}")
        elif is_required:
            raise DamagedError(_("{where}: the field {name!r} is missing", where=where, name=name))
    if EXTRA in hints:
        found[EXTRA] = {key: item for key, item in value.items() if key not in found}
    try:
        return cls(**found)
    except ValueError as error:
        raise DamagedError(_("{head}: {text}", head=where, text=error)) from None


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


@functools.cache
def _fields(cls: type) -> tuple[tuple[str, bool], ...]:
    """Each field's name, and whether a document has to have it."""
    fields = dataclasses.fields(cls)
    return tuple((field.name, _is_required(field)) for field in fields if field.name != EXTRA)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _is_silent(field: dataclasses.Field[Any], value: Any) -> bool:
    if not field.metadata.get("later"):
        return False
    factory = field.default_factory
    return bool(value == (field.default if factory is dataclasses.MISSING else factory()))


def _version(cls: Any, found: object, where: str) -> int:
    """The version of a document of this class. Raises DamagedError for another format, or one of a
    version that is not read any more; NewerError for one that is not read yet.
    """
    accepted = {f"boxcar.{cls.FORMAT}/{v}": v for v in (cls.VERSION, cls.VERSION - 1) if v > 0}
    if isinstance(found, str) and found in accepted:
        return int(accepted[found])
    wanted = next(iter(accepted))
    newer = re.fullmatch(rf"boxcar\.{cls.FORMAT}/([1-9][0-9]{{0,8}})", str(found))
    if newer and int(newer[1]) > cls.VERSION:
        raise NewerError(
            _(
                "{where}: found {found!r}, written by a newer Boxcar: update this one, which "
                "expected format {wanted!r}",
                where=where,
                found=found,
                wanted=wanted,
            )
        )
    raise DamagedError(
        _(
            "{where}: expected format {wanted!r}, found {found!r}",
            where=where,
            wanted=wanted,
            found=found,
        )
    )


def _is_checked(cls: Any, version: int) -> bool:
    since = getattr(cls, "CHECKED_SINCE", None)
    return since is not None and version >= since


def _decode_as(hint: Any, value: Any, where: str) -> Any:
    if type(value) is hint:
        return value
    origin, arguments = _parts(hint)
    if origin is Annotated:
        return _decode_ruled(arguments, value, where)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(arguments, value, where)
    if origin is tuple:
        return _decode_list(arguments, value, where)
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise DamagedError(
                _("{where}: expected an object, found {value}", where=where, value=_kind(value))
            )
        return {
            key: _decode_as(arguments[1], item, f"{where}.{key}") for key, item in value.items()
        }
    if dataclasses.is_dataclass(hint):
        return _decode_object(hint, value, where, f"{where}.")  # type: ignore[arg-type]
    return _decode_scalar(hint, value, where)


def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Remembered for this very hint: `tuple[int | float]` equals `tuple[float | int]`."""
    found = _PARTS.get(id(hint))
    if found is None:
        found = _PARTS[id(hint)] = (hint, typing.get_origin(hint), typing.get_args(hint))
    return found[1:]


def _decode_ruled(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    found = _decode_as(arguments[0], value, where)
    try:
        for rule in arguments[1:]:
            rule(found)
    except ValueError as error:
        raise DamagedError(_("{head}: {text}", head=where, text=error)) from None
    return found


def _decode_union(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in choices:
        return None
    others = [choice for choice in choices if choice is not type(None)]
    for choice in others[:-1]:
        try:
            return _decode_as(choice, value, where)
        except DamagedError:
            continue
    return _decode_as(others[-1], value, where)


def _decode_list(arguments: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    """`tuple[X, ...]`, or one of so many as `tuple[X, Y]` has."""
    if not isinstance(value, list):
        raise DamagedError(
            _("{where}: expected a list, found {value}", where=where, value=_kind(value))
        )
    hints = arguments[:1] * len(value) if arguments[-1] is ... else arguments
    if len(hints) != len(value):
        wanted, found = len(hints), len(value)
        raise DamagedError(
            _(
                "{where}: expected a list of {wanted}, found one of {found}",
                where=where,
                wanted=wanted,
                found=found,
            )
        )
    pairs = zip(hints, value, strict=True)
    return tuple(_decode_as(hint, item, f"{where}[{at}]") for at, (hint, item) in enumerate(pairs))


def _decode_scalar(hint: Any, value: Any, where: str) -> Any:
    if hint in (object, Any):
        return value
    if hint is float and type(value) is int:
        return float(value)
    if hint is bytes:
        return _decode_bytes(value, where)
    # `type(...) is`, because True would pass as an int. A sentence is a text.
    if type(value) is not hint and not (hint is str and isinstance(value, str)):
        raise DamagedError(
            _(
                "{where}: expected {name}, found {value}",
                where=where,
                name=hint.__name__,
                value=_kind(value),
            )
        )
    return value


def _decode_bytes(value: Any, where: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise DamagedError(
            _("{where}: expected base64, found {value}", where=where, value=_kind(value))
        ) from None


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
