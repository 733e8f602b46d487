"""Numbers as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from boxcar.shared.metrics.records import NOT_METRICS
from boxcar.shared.sentence import _

# What an hour of a box costs, as a person typed it: `1.98 CNY/h`. Nobody is asked for prices.


_PRICE = re.compile(r"(?P<amount>\d{1,6}(?:\.\d{1,6})?) (?P<currency>[A-Z]{3})/h")


def price_of_text(text: str) -> tuple[float, str]:
    """The amount for an hour, and its currency. Raises ValueError."""
    found = _PRICE.fullmatch(text)
    if found is None:
        raise ValueError(
            _(
                'expected an amount, a currency of three letters and /h, such as "1.98 CNY/h"; '
                "found {text!r}",
                text=text,
            )
        )
    return float(found["amount"]), found["currency"]


def price_text(amount: float, currency: str) -> str:
    """The same back: `0.3421 USD/h`."""
    return f"{amount:.6f}".rstrip("0").rstrip(".") + f" {currency}/h"


_BUDGET = re.compile(r"(?P<amount>\d{1,9}(?:\.\d{1,6})?) (?P<currency>[A-Z]{3})")


def budget_of_text(text: str) -> tuple[float, str]:
    """An amount that is more than nothing, and its currency. Raises ValueError."""
    found = _BUDGET.fullmatch(text)
    if found is None or not float(found["amount"]):
        raise ValueError(
            _(
                'expected an amount and a currency of three letters, such as "200 CNY"; found '
                "{text!r}",
                text=text,
            )
        )
    return float(found["amount"]), found["currency"]


def _checked(text: str) -> str:
    price_of_text(text)
    return text


Price = Annotated[str, AfterValidator(_checked)]


def size(size_bytes: int) -> str:
    """Bytes: 999 B, 1.5 MB."""
    number, unit = float(size_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def duration(seconds: float) -> str:
    """Seconds: 41s, 1m23s, 2h05m."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def about(seconds: float) -> str:
    """Seconds where the column is narrow: 41s, 12m, 2h05m, 3d04h."""
    whole = int(seconds)
    if whole < 60 or 3600 <= whole < 86_400:
        return duration(whole)
    if whole < 3600:
        return f"{whole // 60}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def count(number: int) -> str:
    """Steps, epochs: 9999, 12k, 1,500k."""
    return f"{number / 1000:,.0f}k" if number >= 10_000 else str(number)


def four_digits(number: object) -> str:
    """A measured number: 0.9123, 1.235e-05."""
    return f"{number:.4g}"


# The numbers of a cell in one line, for people.


_NUMBER = (int, float, type(None))
_NO_BEST: Mapping[str, Any] = {}


def named_numbers(
    values: dict[str, Any], most: int | None = None, best: Mapping[str, Any] = _NO_BEST
) -> str:
    """Metrics in a line: `loss 0.41 (best 0.38), psnr 27.3, top1 -`. Step and epoch have columns of
    their own; None is a number that the job names and nobody found. `best` is the word of job.yaml.
    """
    numbers = [
        f"{name} {_number(value)}{_beside(value, best.get(name))}"
        for name, value in values.items()
        if isinstance(value, _NUMBER) and name not in NOT_METRICS
    ]
    return ", ".join(numbers[:most])


def _number(value: float | None) -> str:
    return "-" if value is None else four_digits(value)


def _beside(value: float | None, best: object) -> str:
    if not isinstance(best, (int, float)) or best == value:
        return ""
    return f" (best {_number(best)})"


# Names that somebody else's rules make alike, kept apart.


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """In their order, each one once and none that is `taken`: `acc`, `acc_2`, `acc_3`."""
    found: list[str] = []
    used = set(taken)
    for name in names:
        free, count = name, 1
        while free in used:
            count += 1
            free = f"{name}_{count}"
        used.add(free)
        found.append(free)
    return found
