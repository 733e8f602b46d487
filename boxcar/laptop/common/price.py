"""What an hour of a box costs, as a person typed it: `1.98 CNY/h`. Nobody is asked for prices."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_PRICE = re.compile(r"(?P<amount>\d{1,6}(?:\.\d{1,6})?) (?P<currency>[A-Z]{3})/h")


def price_of_text(text: str) -> tuple[float, str]:
    """The amount for an hour, and its currency. Raises ValueError."""
    found = _PRICE.fullmatch(text)
    if found is None:
        raise ValueError(
            f'expected an amount, a currency of three letters and /h, such as "1.98 CNY/h"; '
            f"found {text!r}"
        )
    return float(found["amount"]), found["currency"]


def _checked(text: str) -> str:
    price_of_text(text)
    return text


Price = Annotated[str, AfterValidator(_checked)]
