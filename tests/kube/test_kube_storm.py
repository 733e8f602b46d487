"""Everything that a cluster does to pods, at random times; then the same commands end with every
cell verified exactly once, and nothing left on the cluster.

Again with one seed: BOXCAR_SEED=… make test-kube-storm
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from kube_cluster import kube_cluster
from kube_storm import (
    OF_LINKS,
    OF_PODS,
    KubeStorm,
    assert_never_twice_at_once,
    assert_nothing_is_left,
    stormy_on_kube,
)
from proof import assert_nothing_torn, assert_published_once, assert_pulled

SEED = int(os.environ.get("BOXCAR_SEED", random.randrange(10**9)))
RUNS = int(os.environ.get("BOXCAR_STORMS", "2"))


def weather(storm: KubeStorm, *, kills: int, of_verbs: int) -> None:
    """The whole life of the run, and what must hold at its end."""
    run = storm.project
    storm.run_queues(kills=kills)
    assert_published_once(run, storm.cells)
    assert_nothing_torn(run)
    assert_never_twice_at_once(storm)
    storm.type_until_done("pull", kills=of_verbs).ended(0)
    assert_pulled(run, storm.cells)
    said = storm.type_until_done("verify", "--json", kills=of_verbs).ended(0)
    digest = said.document["digest"]
    storm.type_until_done("down", "--approve", digest, kills=of_verbs).ended(0)
    assert_nothing_is_left(storm)
    assert_pulled(run, storm.cells)
    print(f"{storm}: {len(storm.cells)} cells, each verified once")


def test_every_cell_is_verified_once_whatever_happens_to_the_pods(tmp_path: Path) -> None:
    with kube_cluster(tmp_path / "k") as kube:
        kinds = ("container", "evict", "node")
        storm = stormy_on_kube(tmp_path, kube, 20261129, cells=1, kinds=kinds)
        weather(storm, kills=3, of_verbs=0)
        assert set(storm.hits) == set(kinds), str(storm)


@pytest.mark.faults
@pytest.mark.parametrize("number", range(RUNS))
def test_thirty_cells_come_home_through_a_storm(
    tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled(), kube_cluster(tmp_path / "k") as kube:
        storm = stormy_on_kube(tmp_path, kube, SEED + number, cells=15)
        print(f"\nseed {storm.seed}")
        weather(storm, kills=3 * len((*OF_PODS, *OF_LINKS)), of_verbs=8)
