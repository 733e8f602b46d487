"""`onbox answer`: one question of the laptop, as JSON on stdin, and its answer in a marked line."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from boxcar.shared import errors
from boxcar.shared.disk.full import is_full
from boxcar.shared.errors import BoxcarError, InputError, NoRoomError, message_of
from boxcar.shared.files import codec
from boxcar.shared.message import Message
from onbox.answers.request import Request

MARK = b"BOXCAR-ANSWER "
# Imported late, because a look every few seconds must not load what sends webhooks.
ASKS = {
    "report": "onbox.answers.report",
    "release": "onbox.answers.receive_release",
    "install": "onbox.answers.receive_release",
    "prepare": "onbox.answers.receive_release",
    "append": "onbox.answers.append_lines",
    "control": "onbox.answers.control",
    "credentials": "onbox.answers.credentials_in",
    "start": "onbox.answers.start",
    "log": "onbox.answers.log_slice",
    "deliver": "onbox.answers.deliver_late",
    "end": "onbox.answers.end",
    "audit": "onbox.answers.audit",
    "tier_probe": "onbox.answers.tier_check",
}


def run() -> int:
    """Answer what stands on stdin. 0 also where the answer is an error: it was told."""
    # A line of ours among somebody's banner is found by its mark. What else is printed here, also
    # by a child, must not come between.
    out = os.dup(1)
    os.dup2(2, 1)
    told = json.dumps(codec.finite(answer(sys.stdin.buffer.read()))).encode()
    with os.fdopen(out, "wb") as stdout:
        stdout.write(MARK + told + b"\n")
    return 0


def answer(data: bytes) -> dict[str, Any]:
    """The answer to a request in JSON: `{"ask": ..., "run": ..., "durable_dir": ..., "data_dir":
    ...}` and what that ask needs. Bytes travel as base64 text, in both directions.

    | ask | needs | is told |
    | --- | --- | --- |
    | report | queues, everything, have | see report.answer |
    | release | digest | is_there, problems: sentences; none where it is as it was pushed |
    | install | digest, unfinished | is_new |
    | prepare | digest, sizes_bytes, is_mounted | kept: the unfinished folder to go on in, or null |
    | append | queue, expected, data | size_bytes, sha256: of the whole file afterwards |
    | control | queue, document: the fields of a Control | nothing |
    | credentials | path, record | names: of the secrets, never a value |
    | start | queue, digest, start_index, detach | by: tmux, setsid or running; pid, or null |
    | log | cell or queue, offset, lines, most_bytes | see log_slice.answer |
    | deliver | queue, digest, credentials | left: events that are still due |
    | end | queues, credentials | alive: `{"queue": ...}` and `{"cell": ...}`; empty: it is done |
    | audit, tier_probe | see there | see there |

    What goes wrong is `{"error": {"kind": ..., "text": ..., "command": ...}}`, with the kind of
    shared.errors that says what the caller should do, and what to type next or null.
    """
    try:
        words = _words(data)
        module = importlib.import_module(_module(words))
        answered: dict[str, Any] = module.answer(words)
    except BoxcarError as error:
        return _error(_kind(error), message_of(error))
    except OSError as error:
        return _error(NoRoomError if is_full(error) else BoxcarError, message_of(error))
    return answered


def _words(data: bytes) -> dict[str, Any]:
    try:
        words = json.loads(data)
    except (ValueError, RecursionError):
        # `from None`, and not a word of it: it may hold secrets.
        raise InputError("the request is not a JSON document") from None
    if not isinstance(words, dict):
        raise InputError(f"expected a request, found {type(words).__name__}")
    return words


def _module(words: dict[str, Any]) -> str:
    ask = Request(words).text("ask")
    if ask not in ASKS:
        raise InputError(f"there is no answer to {ask!r}; expected one of {', '.join(ASKS)}")
    return ASKS[ask]


def _kind(error: BoxcarError) -> type:
    """The class as the laptop knows it: the first of its bases that stands in shared.errors."""
    return next(cls for cls in type(error).__mro__ if cls.__module__ == errors.__name__)


def _error(kind: type, message: Message) -> dict[str, Any]:
    return {"error": {"kind": kind.__name__} | codec.encode(message)}
