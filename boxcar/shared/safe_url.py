"""URLs as they may be shown and kept: without user, password and signature."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from boxcar.shared.disk import digest
from boxcar.shared.sentence import Sentence, _

_USER = re.compile(r"(\w+://)[^\s/'\"]+@")
_QUERY = re.compile(r"(\w+://[^\s?'\"<>]+)\?[^\s'\"<>)]+")
# What a signed URL gets anew each time that it is signed.
_SIGNATURE = re.compile(
    r"(?i)x-(amz|goog|oss|cos|tos)-.*|aws ?access ?key ?id|google ?access ?id|oss ?access ?key ?id"
    r"|signature|expires|policy|key-pair-id|token|.*_token|authorization|s(ig|e|t|p|v|r|ks|ke|kt)"
)
# What a service takes in the place of a password.
_KEY = re.compile(r"(?i)(.*[-_])?(key|api-?key|auth|pass|passwd|password|secret|token|credential)")


def shown(text: str) -> str:
    """A URL, or an error's text with URLs in it, without what lets somebody in."""
    return _QUERY.sub(r"\1?...", _USER.sub(r"\1", text))


def identity_of_url(url: str) -> str:
    """A digest that is the same for the same place, whoever asks and whenever it was signed."""
    parts = urlsplit(_USER.sub(r"\1", url))
    query = [pair for pair in parse_qsl(parts.query) if not _SIGNATURE.fullmatch(pair[0])]
    return digest.of_json([parts.scheme, parts.netloc, parts.path, sorted(query)])


def lets_in(url: str) -> Sentence | None:
    """What of a URL lets somebody in, and so must stand in no file that others read; else None."""
    if _USER.search(url) or "@" in urlsplit(url).netloc:
        return _("a user or password")
    for name, _value in parse_qsl(urlsplit(url).query, keep_blank_values=True):
        if _SIGNATURE.fullmatch(name) or _KEY.fullmatch(name):
            return _("a signature or key ({name})", name=name)
    return None
