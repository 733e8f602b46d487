"""The few objects that kubectl sends as protobuf, whatever the server likes: those that it makes
itself, as `create secret` and `auth can-i` do. An answer may be JSON.

Field numbers from the API's own generated.proto (Kubernetes 1.37); a map's key is 1, its value 2.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from .store import ApiError, Object

MAGIC = b"k8s\x00"
# NUMBER: (NAME, what it is); a dict is a message of its own.
_META = {1: ("name", str), 3: ("namespace", str), 11: ("labels", "map"), 12: ("annotations", "map")}
_ATTRIBUTES = {
    number: (name, str)
    for number, name in enumerate(
        ("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1
    )
}
_KINDS: dict[str, dict[int, Any]] = {
    "Secret": {1: ("metadata", _META), 2: ("data", "bytes"), 3: ("type", str)},
    "ConfigMap": {1: ("metadata", _META), 2: ("data", "map")},
    "Namespace": {1: ("metadata", _META)},
    "Eviction": {1: ("metadata", _META)},
    "SelfSubjectAccessReview": {
        1: ("metadata", _META),
        2: ("spec", {1: ("resourceAttributes", _ATTRIBUTES)}),
    },
    "DeleteOptions": {
        2: ("preconditions", {1: ("uid", str)}),
        4: ("propagationPolicy", str),
        1: ("gracePeriodSeconds", int),
    },
}
_ENVELOPE = {
    1: ("type", {1: ("apiVersion", str), 2: ("kind", str)}),
    2: ("raw", bytes),
}


def decoded(data: bytes) -> Object:
    envelope = _message(data.removeprefix(MAGIC), _ENVELOPE)
    kind = envelope["type"]["kind"]
    if kind not in _KINDS:
        said = f"the body of the request was in an unknown format: {kind} as protobuf"
        raise ApiError(415, "UnsupportedMediaType", said)
    return {**envelope["type"], **_message(envelope["raw"], _KINDS[kind])}


def _message(data: bytes, fields: dict[int, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for number, value in _fields(data):
        if number not in fields:
            continue
        name, what = fields[number]
        if what in ("map", "bytes"):
            pair = dict(_fields(value))
            text = pair.get(2, b"")
            entry = base64.b64encode(text) if what == "bytes" else text
            made.setdefault(name, {})[pair[1].decode()] = entry.decode()
        elif isinstance(what, dict):
            made[name] = _message(value, what)
        elif what is str:
            if value:
                made[name] = value.decode()
        else:
            made[name] = value
    return made


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: bytes, or an int for a varint."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            yield tag >> 3, data[at : at + value]
            at += value
        else:
            yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
