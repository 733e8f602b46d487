"""URLs as they may be shown and kept: without user, password and signature."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from boxcar.shared.disk import digest

_USER = re.compile(r"(\w+://)[^\s/'\"]+@")
_QUERY = re.compile(r"(\w+://[^\s?'\"<>]+)\?[^\s'\"<>)]+")
# What a signed URL gets anew each time that it is signed.
_SIGNATURE = re.compile(
    r"(?i)x-(amz|goog|oss|cos|tos)-.*|aws ?access ?key ?id|google ?access ?id|oss ?access ?key ?id"
    r"|signature|expires|policy|key-pair-id|token|.*_token|authorization|s(ig|e|t|p|v|r|ks|ke|kt)"
)


def shown(text: str) -> str:
    """A URL, or an error's text with URLs in it, without what lets somebody in."""
    return _QUERY.sub(r"\1?...", _USER.sub(r"\1", text))


def identity_of_url(url: str) -> str:
    """A digest that is the same for the same place, whoever asks and whenever it was signed."""
    parts = urlsplit(_USER.sub(r"\1", url))
    query = [pair for pair in parse_qsl(parts.query) if not _SIGNATURE.fullmatch(pair[0])]
    return digest.of_json([parts.scheme, parts.netloc, parts.path, sorted(query)])
