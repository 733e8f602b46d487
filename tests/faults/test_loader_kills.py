"""Fifty real kills of a training that reads, with and without workers."""

from __future__ import annotations

import pytest
from test_loader import kill_many_times

pytestmark = pytest.mark.faults


def test_50_real_kills_do_not_change_what_the_training_sees(tmp_path):
    assert kill_many_times(tmp_path, kills=50, epochs=20) == 50
