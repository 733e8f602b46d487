from __future__ import annotations

from collections.abc import Iterator

import pytest

from boxcar.training.data import generators


@pytest.fixture
def seeded() -> Iterator[None]:
    """All three generators are, and get their state back."""
    with generators.own_draws():
        generators.seed_generators(1)
        yield
