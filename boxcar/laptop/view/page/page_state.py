"""One state of the page, and what changed since an older one. Pure.

The parts are found in the text itself, so what is sent later is what a whole page would hold. A
part is a row, a chart or a line of the head. Where anything else differs, the whole page is sent.
"""

from __future__ import annotations

import difflib
import gzip
import html
import json
import re
from collections.abc import Mapping
from functools import cached_property

from boxcar.shared.record import dataclass

# None of them holds another one.
_PART = re.compile(r'<(thead|tr|header|p|figure) id="([^"]+)".*?</\1>', re.DOTALL)
_CURVE = re.compile(r'(<path id="([^"]+)" d=")([^"]*)"')
_OF_LOOK = re.compile(r'(?<=<body )data-at="([^"]*)" data-number="[^"]*"')


def pack(data: bytes) -> bytes:
    """As a browser takes it that accepts gzip."""
    return gzip.compress(data, 6)


@dataclass(frozen=True)
class PageState:
    """The file whole; `number` is that of the look, and 0 where nobody serves it."""

    text: str
    number: int = 0

    @cached_property
    def whole(self) -> bytes:
        return self.text.encode("utf-8", "replace")

    @cached_property
    def packed(self) -> bytes:
        return pack(self.whole)

    @cached_property
    def shape(self) -> str:
        """What is no part, nor the blanks between parts."""
        return " ".join(_PART.sub("", _OF_LOOK.sub("", self.text)).split())

    @cached_property
    def parts(self) -> dict[str, str]:
        """By id, in their order; of a chart without its curves."""
        found = ((one[2], one[0]) for one in _PART.finditer(self.text))
        return {html.unescape(id): _CURVE.sub(r'\1"', text) for id, text in found}

    @cached_property
    def curves(self) -> dict[str, str]:
        return {html.unescape(one[2]): one[3] for one in _CURVE.finditer(self.text)}

    def since(self, old: PageState) -> bytes:
        """What whoever has the old one lacks, as the page's script takes it."""
        if old.shape != self.shape:
            return self.whole
        at = _OF_LOOK.search(self.text)
        news = {
            "at": at[1] if at else "",
            "number": self.number,
            "parts": {id: text for id, text in self.parts.items() if old.parts.get(id) != text},
            "gone": [id for id in old.parts if id not in self.parts],
            "after": _moved(list(old.parts), list(self.parts)),
            "curves": _grown(old.curves, self.curves),
        }
        return json.dumps(news, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )


def _moved(before: list[str], after: list[str]) -> dict[str, str]:
    """The parts that stand elsewhere or are new, each with the one it stands behind, in an order
    in which they can be put there one by one.
    """
    if before == after:
        return {}
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    kept = {id for block in blocks for id in after[block.b : block.b + block.size]}
    return {id: ahead for ahead, id in zip(["", *after], after, strict=False) if id not in kept}


def _grown(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Of each curve that changed how much of it stays, and what follows."""
    found = {}
    for id, points in new.items():
        if points != old.get(id):
            same = _same(old.get(id, ""), points)
            found[id] = (same, points[same:])
    return found


def _same(before: str, after: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(before), len(after)))
