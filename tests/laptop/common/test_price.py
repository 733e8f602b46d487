from __future__ import annotations

import pytest

from boxcar.laptop.common import units


def test_a_price_is_an_amount_a_currency_and_an_hour() -> None:
    assert units.price_of_text("1.98 CNY/h") == (1.98, "CNY")
    assert units.price_of_text("2 USD/h") == (2.0, "USD")


@pytest.mark.parametrize("text", ["1.98", "1.98 CNY", "-1 CNY/h", "1,98 CNY/h", "¥2/h", "x CNY/h"])
def test_what_is_no_price_is_told_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r'such as "1\.98 CNY/h"'):
        units.price_of_text(text)
