"""The words of a grid as its axes: `lr=1e-3,3e-4` has two values, `seed=0..2` has three. Pure.

A comma inside brackets parts nothing, and one inside quotes neither: the quotes go, as in a shell.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from boxcar.shared.cell.cell_name import key_of
from boxcar.shared.errors import counted
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

MOST_CELLS = 10_000
_WHOLE = r"-?(?:0|[1-9][0-9]{0,8})"
_RANGE = re.compile(rf"({_WHOLE})\.\.({_WHOLE})")
_NEARLY_A_RANGE = re.compile(r"[-+0-9.eE]+\.\.[-+0-9.eE]+")
_PAIRS = {"[": "]", "(": ")", "{": "}"}
_QUOTES = "'\""


@dataclass(frozen=True)
class Axis:
    """A word without its values, `lr=`, and what stands behind it. A lone flag has one, ''."""

    head: str
    values: tuple[str | range, ...]

    def __len__(self) -> int:
        return sum(len(value) if isinstance(value, range) else 1 for value in self.values)

    def words(self) -> Iterator[str]:
        """The words of a line: `lr=1e-3`, then `lr=3e-4`."""
        for value in self.values:
            each = map(str, value) if isinstance(value, range) else (value,)
            yield from (self.head + text for text in each)


def axis(word: str) -> Axis:
    """Raises ValueError that says what is wrong with the word."""
    key, is_assigned, text = word.partition("=")
    if not is_assigned and word.startswith("-") and key_of(word):
        return Axis(word, ("",))
    if not is_assigned or not key_of(word):
        raise ValueError(_("expected key=value,value or key=0..2, found {word!r}", word=word))
    values = [_value(word, part) for part in _parted(word, text)]
    return Axis(f"{key}=", tuple(values))


def combinations(axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    """The words of each cell; the last axis changes fastest. Raises ValueError."""
    count = math.prod(map(len, axes))
    if count > MOST_CELLS:
        sizes = " x ".join(str(len(one)) for one in axes if len(one) > 1)
        raise ValueError(
            _(
                "the grid has {count} ({sizes}), the limit is {most_cells:,}. Give fewer values, "
                "or make it in parts",
                count=counted(count, "cell"),
                sizes=sizes,
                most_cells=MOST_CELLS,
            )
        )
    for one in axes:
        _refuse_twins(one)
    return list(itertools.product(*(tuple(one.words()) for one in axes)))


def _refuse_twins(one: Axis) -> None:
    seen = set[str]()
    for word in one.words():
        if word in seen:
            raise ValueError(_("{word!r} is twice in the grid", word=word))
        seen.add(word)


def _value(word: str, text: str) -> str | range:
    if not text:
        raise ValueError(_("{word!r} has an empty value; write key=value,value", word=word))
    if not (match := _RANGE.fullmatch(text)):
        if _NEARLY_A_RANGE.fullmatch(text):
            raise ValueError(
                _(
                    "{text!r} in {word!r}: a range is two whole numbers, such as 0..2",
                    text=text,
                    word=word,
                )
            )
        return text
    first, last = int(match[1]), int(match[2])
    if first > last:
        raise ValueError(
            _("the range {text!r} in {word!r} ends before it begins", text=text, word=word)
        )
    return range(first, last + 1)


def _parted(word: str, text: str) -> list[str]:
    """The values between the commas that stand in no brackets and no quotes."""
    parts, closing, quote = [""], list[str](), ""
    for char in text:
        if char == "," and not closing and not quote:
            parts.append("")
            continue
        is_mark = char == quote if quote else char in _QUOTES
        if is_mark:
            quote = "" if quote else char
        elif not quote and char in _PAIRS:
            closing.append(_PAIRS[char])
        elif not quote and closing and char == closing[-1]:
            closing.pop()
        # Inside brackets they belong to the value.
        if not is_mark or closing:
            parts[-1] += char
    if closing or quote:
        raise ValueError(
            _(
                "{word!r}: {closing} is missing at the end",
                word=word,
                closing=closing[-1] if closing else quote,
            )
        )
    return parts
