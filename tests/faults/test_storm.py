"""Hundreds of kill -9 at random times: of agents, wrappers, scripts and the laptop's verbs.

Again with one seed: BOXCAR_SEED=… make test-faults
"""

from __future__ import annotations

import os
import random

import pytest
from proof import assert_nothing_runs, assert_nothing_torn, assert_published_once, assert_pulled
from storm import assert_went_on, stormy

pytestmark = pytest.mark.faults
SEED = int(os.environ.get("BOXCAR_SEED", random.randrange(10**9)))
RUNS = 10


@pytest.mark.parametrize("number", range(RUNS))
@pytest.mark.usefixtures("tell")
def test_every_cell_is_verified_once_whatever_is_killed(project, number):
    storm = stormy(project, seed=SEED + number, cells=8)
    run = storm.project
    print(f"seed {storm.seed}")
    storm.run_queues(kills=40)
    assert_published_once(run, storm.cells)
    assert_nothing_torn(run)
    assert_went_on(storm)
    storm.type_until_done("pull", kills=10).ended(0)
    assert_pulled(run, storm.cells)
    said = storm.type_until_done("verify", "--json", kills=10).ended(0)
    storm.type_until_done("down", "--approve", said.document["digest"], kills=10).ended(0)
    assert not [path for path in run.local.rglob("*") if path.is_file()]
    assert_pulled(run, storm.cells)
    assert_nothing_runs(run)
    print(f"{storm}: {len(storm.cells)} cells, each verified once")
