"""The two records of an attempt as its wrapper writes them: as `codec.to_document` spells those of
boxcar/shared/files/attempt.py, without what codec imports.
"""

from __future__ import annotations

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", '"': '\\"', "\\": "\\\\"}
_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)} | {ord(k): v for k, v in _SHORT.items()}
_WORDS = {None: "null", True: "true", False: "false"}

Value = str | int | float | None


def running(fields: dict[str, Value]) -> bytes:
    return _document("boxcar.running/1", fields)


def done(fields: dict[str, Value]) -> bytes:
    return _document("boxcar.done/1", fields)


def _document(format: str, fields: dict[str, Value]) -> bytes:
    pairs = [
        f' "{name}": {_spelled(value)}' for name, value in {"format": format, **fields}.items()
    ]
    # Half a surrogate pair, from a name that is no UTF-8, is written as JSON's escape of it.
    return ("{\n" + ",\n".join(pairs) + "\n}\n").encode(errors="backslashreplace")


def _spelled(value: Value) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return _WORDS[value] if value is None or isinstance(value, bool) else repr(value)
