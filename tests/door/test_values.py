"""How the text behind a flag is read: what it may be, and one sentence for what it may not."""

from __future__ import annotations

import pytest

from boxcar.door import run_verb, verb_table
from boxcar.shared.errors import InputError


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (verb_table.TIME, "90", 90.0),
        (verb_table.TIME, "1.5m", 90.0),
        (verb_table.TIME, "2h", 7200.0),
        (verb_table.COUNT, "9", 9),
        (verb_table.PORT, "0", 0),
        (verb_table.EXIT_CODE, "-9", -9),
        (verb_table.FRACTION, "1e-6", 1e-6),
        (verb_table.RATE, "800", 800),
        (verb_table.RATE, "800K", 800),
        (verb_table.RATE, "1.5m", 1536),
    ],
)
def test_a_value_is_read_as_its_flag_takes_it(kind, text, value):
    assert run_verb._READERS[kind](text, "--flag") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (verb_table.TIME, ""),
        (verb_table.TIME, "m"),
        (verb_table.TIME, "soon"),
        (verb_table.COUNT, ""),
        (verb_table.COUNT, "-1"),
        (verb_table.PORT, "65536"),
        (verb_table.EXIT_CODE, "--9"),
        (verb_table.RATE, "0"),
        (verb_table.RATE, "2Q"),
        (verb_table.RATE, "-1M"),
        (verb_table.RATE, ""),
        (verb_table.RATE, "K"),
    ],
)
def test_a_value_that_cannot_be_is_one_sentence(kind, text):
    with pytest.raises(InputError, match=r"expected a (number|time|port|rate)"):
        run_verb._READERS[kind](text, "--flag")
