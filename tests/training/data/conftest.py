from __future__ import annotations

from collections.abc import Iterator

import pytest

from boxcar.training.data import sample_seeds


@pytest.fixture
def seeded() -> Iterator[None]:
    """All three generators are, and get their state back."""
    with sample_seeds.own_draws():
        sample_seeds.seed_generators(1)
        yield
