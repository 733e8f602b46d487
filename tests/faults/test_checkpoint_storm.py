"""Two hundred kill -9 in the middle of saves.

Again with one seed: BOXCAR_SEED=… make test-faults
"""

from __future__ import annotations

import os
import random

import pytest
from checkpoint_storm import storm
from ranks_at_work import run_ranks

pytestmark = pytest.mark.faults
SEED = int(os.environ.get("BOXCAR_SEED", random.randrange(10**9)))


def test_after_every_kill_a_whole_state_is_found(tmp_path):
    [steps] = run_ranks(1, storm, tmp_path, 200, SEED, timeout_s=600)
    print(f"seed {SEED}: went on from {steps[::20]}")
    assert steps[-1] >= 50
