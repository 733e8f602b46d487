from __future__ import annotations

import pytest

from boxcar.shared import names


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "-x", "_x", "a/b", "a b", "a\n", "a\0", "$(x)", "a;b", "é"]
)
def test_what_could_lead_elsewhere_is_no_name(name: str) -> None:
    for rule in (names.RUN, names.PLACE, names.DIGEST):
        assert not rule.fullmatch(name)


def test_a_run_is_lower_case_and_a_queue_may_have_more() -> None:
    assert names.RUN.fullmatch("digits-ablation-2")
    assert not names.RUN.fullmatch("Digits")
    assert names.PLACE.fullmatch("queue_1.A")
    assert names.DIGEST.fullmatch("0a" * 32)
    assert not names.DIGEST.fullmatch("0A" * 32)
