"""What `onbox answer` said, read on the laptop: one marked line among whatever else was printed."""

from __future__ import annotations

import json
from typing import Any

from boxcar.shared import errors
from boxcar.shared.errors import BoxcarError, DamagedError, TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.message import Command, Message

MARK = b"BOXCAR-ANSWER "


def read(box: str, code: int, out: bytes, err: str) -> dict[str, Any]:
    """The answer. Raises again what the box raised, and TemporaryError where it did not answer."""
    lines = [line for line in out.split(b"\n") if line.startswith(MARK)]
    try:
        answer = json.loads(lines[-1][len(MARK) :])
    except (IndexError, ValueError, RecursionError):
        told = err.strip()[-1500:] or "it printed nothing"
        raise TemporaryError(f"{box}: did not answer (code {code}): {told}") from None
    if not isinstance(answer, dict):
        raise TemporaryError(f"{box}: expected an answer, found {type(answer).__name__}")
    if "error" in answer:
        raise _raised(box, answer["error"])
    return answer


def _raised(box: str, error: Any) -> BoxcarError:
    told = error if isinstance(error, dict) else {"text": error}
    message = Message(f"{box}: {told.get('text')}", _command(told.get("command")))
    known = getattr(errors, str(told.get("kind")), BoxcarError)
    is_ours = isinstance(known, type) and issubclass(known, BoxcarError)
    return known(message) if is_ours else BoxcarError(message)


def _command(told: object) -> Command | None:
    """What the box says to type next; what is none is left out, for the text counts."""
    try:
        return codec.decode(Command, told, "command") if told else None
    except DamagedError:
        return None
