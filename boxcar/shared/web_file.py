"""One file on a web server: is it there, how large is it, and its bytes.

By the standard library, which takes the proxies of the environment and needs no package on a box.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from dataclasses import field
from email.message import Message
from http.client import HTTPException, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# For a byte, not for the file.
TIMEOUT_S = 60.0
BLOCK_BYTES = 1 << 20
# So much tells a page from a file.
_HEAD_BYTES = 64
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")
_PAGE = re.compile(rb"(?i)\s*(?:<!doctype html|<html)")
_PAGES = ("html", "htm", "xhtml")


class PageError(Exception):
    """A web page came where a file was asked: a login, or a notice that it has moved."""


@dataclass(frozen=True)
class WebFile:
    """`size_bytes` None: the server does not say. `version` changes when the file does; "" where
    nothing tells. `token` goes to the host of the `url` only.
    """

    url: str
    size_bytes: int | None
    version: str
    md5: str | None
    has_ranges: bool
    token: str = field(default="", repr=False)


def look_at_web_file(url: str, token: str = "", *, timeout_s: float = TIMEOUT_S) -> WebFile:
    """What the server says of the file.

    Its first bytes are asked for, since stores that sign URLs refuse HEAD. Raises HTTPError,
    URLError, OSError, HTTPException, PageError.
    """
    try:
        answer = _open(url, token, (0, _HEAD_BYTES), timeout_s)
    except HTTPError as error:
        if error.code == 416 and _total(error.headers) == 0:  # an empty file has no first byte
            return WebFile(url, 0, _version(error.headers), None, False, token)
        raise
    with answer:
        head, said = answer.read(_HEAD_BYTES), answer.headers
        if _is_page(head, str(said.get("Content-Type", ""))) and not url_of_page(url):
            raise PageError(_("a web page came where a file was asked: a login, or it has moved"))
        has_ranges = answer.status == 206
        length = said.get("Content-Length", "")
        size_bytes = _total(said) if has_ranges else int(length) if length.isdecimal() else None
        is_known = has_ranges and size_bytes is not None
        return WebFile(url, size_bytes, _version(said), said.get("Content-MD5"), is_known, token)


def read_range(file: WebFile, start: int, end: int) -> bytes:
    """Bytes `start` to `end` (not included), or fewer where the line is cut."""
    with _open(file.url, file.token, (start, end)) as answer:
        found = _RANGE.fullmatch(str(answer.headers.get("Content-Range", "")))
        if answer.status != 206 or not found or found[1] != str(start):
            raise OSError(_("the server does not give the part that was asked for"))
        return bytes(answer.read(end - start))


def stream(file: WebFile) -> Iterator[bytes]:
    """All bytes from the beginning."""
    with _open(file.url, file.token) as answer:
        while block := answer.read(BLOCK_BYTES):
            yield block


def why(error: BaseException) -> str:
    """What went wrong, without the URL."""
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.reason}".strip()
    if isinstance(error, URLError):
        return why(error.reason) if isinstance(error.reason, BaseException) else str(error.reason)
    if isinstance(error, TimeoutError):
        return _("no answer in {seconds:.0f} s", seconds=TIMEOUT_S)
    return str(error) or type(error).__name__


ERRORS = (OSError, HTTPException, ValueError, PageError)
"""What a look may raise."""


def url_of_page(url: str) -> bool:
    return urlsplit(url).path.lower().rpartition(".")[2] in _PAGES


class _SameHost(urllib.request.HTTPRedirectHandler):
    """A token is not for the host that one is sent on to: a store answers it with an error."""

    http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302  # Python 3.10 has none

    def redirect_request(  # noqa: PLR0917 (urllib's)
        self,
        request: urllib.request.Request,
        answer: IO[bytes],
        code: int,
        text: str,
        said: Any,
        url: str,
    ) -> urllib.request.Request | None:
        made = super().redirect_request(
            request, answer, 307 if code == 308 else code, text, said, url
        )
        if made and urlsplit(url)[:2] != urlsplit(request.full_url)[:2]:
            made.remove_header("Authorization")
        return made


def _open(
    url: str, token: str, part: tuple[int, int] | None = None, timeout_s: float = TIMEOUT_S
) -> HTTPResponse:
    # A server that compresses would make sizes and ranges those of another file.
    head = {"User-Agent": "boxcar", "Accept": "*/*", "Accept-Encoding": "identity"}
    if part:
        head["Range"] = f"bytes={part[0]}-{part[1] - 1}"
    if token:
        head["Authorization"] = f"Bearer {token}"
    opener = urllib.request.build_opener(_SameHost)
    request = urllib.request.Request(quote(url, safe="%/:=&?~#+!$,;'@()*[]"), headers=head)
    answer: HTTPResponse = opener.open(request, timeout=timeout_s)
    return answer


def _is_page(head: bytes, kind: str) -> bool:
    is_said = "html" in kind.lower() and head.lstrip()[:1] == b"<"
    return is_said or bool(_PAGE.match(head))


def _total(said: Message) -> int | None:
    found = _RANGE.fullmatch(str(said.get("Content-Range", "")))
    return int(found[3]) if found and found[3] != "*" else None


def _version(said: Message) -> str:
    names = ("ETag", "Last-Modified")
    return next((f"{name}={said[name]}" for name in names if said.get(name)), "")
