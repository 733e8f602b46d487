"""`resources` of job.yaml, and whether what a platform or a box has is enough for them. Pure.

Vendors call both 10^9 and 2^30 bytes a GB, and a driver keeps some for itself. So `GB` is read in
favour of the card: the least is counted in 10^9 bytes, the most in 2^30. `GiB` is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import BeforeValidator

from boxcar.laptop.common import units
from boxcar.laptop.common.yaml_models import Model
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_UNITS = {"M": (10**6, 2**20), "G": (10**9, 2**30), "T": (10**12, 2**40)}
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([MGT])(i?)B", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,4}")
_Read = Callable[[str], tuple[int, int]]
_EXAMPLE = "24GB, 24GB+, >=24GB or 16GB-48GB"
# What stands beside a card's model: the vendor, the brand, the generation of its name.
_BRANDS = frozenset({"nvidia", "amd", "geforce", "rtx", "gtx", "tesla", "quadro", "instinct"})
_GLUED_BRAND = re.compile(r"(?:rtx|gtx)(?=\d)")
# How one model is built, and not another model.
_BUILDS = re.compile(r"sxm\d?|pcie|pci|nvl|hbm\w*|generation|tensor|core|gpu")
_MEMORY = re.compile(r"(\d{1,4})g(?:i?b)?")


@dataclass(frozen=True)
class Range:
    """From `least` to `most`, both included; `most` is None where nothing is too much.

    `text` is how a person wrote it. Bytes for a size, a number for a count.
    """

    least: int
    most: int | None
    text: str

    def holds(self, number: int) -> bool:
        return self.least <= number and (self.most is None or number <= self.most)


@dataclass(frozen=True)
class Card:
    """A GPU as its platform or driver calls it; `memory_bytes` is None where that is not told."""

    name: str
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Offer:
    """The most that can be had. None, or an empty list: not known, and nothing is refused."""

    cards: tuple[Card, ...] = ()
    most_gpus: int | None = None
    disk_bytes: int | None = None
    shm_bytes: int | None = None


def _size(value: object) -> object:
    return _range(value, _bytes, _("a size such as {example}", example=_EXAMPLE))


def _size_from(value: object) -> object:
    """A disk is never too large: one size is the least that is wanted."""
    found = _range(value, _bytes, _("the smallest size you need, such as 100GB"))
    if isinstance(found, Range) and "-" in found.text:
        raise ValueError(
            _("expected the smallest size you need, such as 100GB, found {value!r}", value=value)
        )
    return Range(found.least, None, found.text) if isinstance(found, Range) else found


def _one_size(value: object) -> object:
    found = _range(value, _bytes, _("a size such as 2GB"))
    return found.least if isinstance(found, Range) else found


# Such as `2GB` or `512MiB`.
Size = Annotated[int, BeforeValidator(_one_size)]


def _count(value: object) -> object:
    return _range(value, _number, _("a number of GPUs such as 1, 2+ or 1-4"))


def _names(value: object) -> object:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or not _model(name):
            raise ValueError(
                _(
                    "expected a GPU's name such as A100, or a list such as [A100, H100], found "
                    "{name!r}",
                    name=name,
                )
            )
    if not names:
        raise ValueError(_("expected at least one GPU's name, such as [A100, H100]"))
    return tuple(names)


class Gpu(Model):
    """A constraint on the cards of one box. `name`: any of these families."""

    name: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    count: Annotated[Range | None, BeforeValidator(_count)] = None
    memory: Annotated[Range | None, BeforeValidator(_size)] = None  # of one card


class Resources(Model):
    """What one box must have. What is not named does not matter."""

    gpu: Gpu | None = None
    disk: Annotated[Range | None, BeforeValidator(_size_from)] = None
    shm: Annotated[Range | None, BeforeValidator(_size_from)] = None


def refusals(wishes: Resources, offer: Offer) -> list[str]:
    """Why the offer is not enough, as sentences; [] where it is, as far as it is known."""
    return [
        *(_card_refusals(wishes.gpu, offer) if wishes.gpu else []),
        *_too_small("disk", wishes.disk, offer.disk_bytes),
        *_too_small("/dev/shm", wishes.shm, offer.shm_bytes),
    ]


def is_family(wish: str, name: str) -> bool:
    """Whether the card is of the family: A100 holds A100-SXM4-80GB, and neither A10 nor A800.

    A suffix makes another model (4080 SUPER, 3080 Ti, L40S), and so 4090D is no 4090: it has fewer
    cores, and two cells on both are no fair comparison. Who takes either writes [4090, 4090D].
    """
    return _model(wish) == _model(name) and _builds(wish) <= _builds(name)


def _card_refusals(gpu: Gpu, offer: Offer) -> list[str]:
    found: list[str] = []
    if gpu.count and offer.most_gpus is not None and offer.most_gpus < gpu.count.least:
        found.append(
            _(
                "the job needs {count}, this box has {what}",
                count=_gpus(gpu.count),
                what=offer.most_gpus or "none",
            )
        )
    named = [card for card in offer.cards if not gpu.name or _is_any_family(gpu.name, card.name)]
    if offer.cards and not named:
        return [
            *found,
            _(
                "the job needs {gpu}, this box has {cards}",
                gpu=" or ".join(gpu.name),
                cards=_list(offer.cards),
            ),
        ]
    if gpu.memory and named and not any(_has_memory(gpu.memory, card) for card in named):
        found.append(
            _(
                "the job needs a GPU with {text}, this box has {named}",
                text=gpu.memory.text,
                named=_list(named),
            )
        )
    return found


def _gpus(count: Range) -> str:
    return f"{count.text} GPU" if count.text == "1" else f"{count.text} GPUs"


def _is_any_family(wishes: tuple[str, ...], name: str) -> bool:
    return any(is_family(wish, name) for wish in wishes)


def _has_memory(wanted: Range, card: Card) -> bool:
    if card.memory_bytes is not None:
        return wanted.holds(card.memory_bytes)
    sizes = [int(match[1]) for word in _words(card.name) if (match := _MEMORY.fullmatch(word))]
    # A name says what is on the box of the card, and GB there is either kind.
    return not sizes or any(wanted.holds(sizes[-1] * unit) for unit in _UNITS["G"])


def _too_small(what: str, wanted: Range | None, there_bytes: int | None) -> list[str]:
    if wanted is None or there_bytes is None or there_bytes >= wanted.least:
        return []
    return [
        _(
            "the job needs {text} of {what}, this box has {size}",
            text=wanted.text,
            what=what,
            size=units.size(there_bytes),
        )
    ]


def _list(cards: Sequence[Card]) -> str:
    return ", ".join(
        card.name + (f" ({units.size(card.memory_bytes)})" if card.memory_bytes else "")
        for card in cards
    )


# --- a card's name


def _words(name: str) -> list[str]:
    return [_GLUED_BRAND.sub("", word) for word in re.findall(r"[a-z0-9]+", name.casefold())]


def _model(name: str) -> str:
    """What makes two names one model; `RTX_4080 Super` and `4080SUPER` are one."""
    return "".join(
        word
        for word in _words(name)
        if word not in _BRANDS and not _BUILDS.fullmatch(word) and not _MEMORY.fullmatch(word)
    )


def _builds(name: str) -> set[str]:
    """The form and memory that a name asks for or tells: sxm, pcie, 80g."""
    found = set()
    for word in _words(name):
        if match := _MEMORY.fullmatch(word):
            found.add(f"{match[1]}g")
        elif _BUILDS.fullmatch(word):
            found.add(word.rstrip("0123456789"))
    return found


# --- how ranges are written


def _range(value: object, read: _Read, expected: str) -> object:
    if value is None or isinstance(value, Range):
        return value
    text = value.strip() if isinstance(value, str) else ""
    try:
        return _parse(text, read)
    except ValueError:
        raise ValueError(
            _("expected {expected}, found {value!r}", expected=expected, value=value)
        ) from None


def _parse(text: str, read: _Read) -> Range:
    if text.startswith(">="):
        return Range(read(text[2:])[0], None, text)
    if text.endswith("+"):
        return Range(read(text[:-1])[0], None, text)
    first, dash, last = text.partition("-")
    least, most = read(first)[0], read(last if dash else first)[1]
    if most < least or most == 0:
        raise ValueError(text)
    return Range(least, most, text)


def _bytes(text: str) -> tuple[int, int]:
    """The same size as the least and as the most that it may mean."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ValueError(text)
    decimal, binary = _UNITS[found[2].upper()]
    number = float(found[1])
    return int(number * (binary if found[3] else decimal)), int(number * binary)


def _number(text: str) -> tuple[int, int]:
    if not _COUNT.fullmatch(text.strip()):
        raise ValueError(text)
    return int(text), int(text)
