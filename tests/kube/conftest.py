"""One cluster for all tests of a worker; those that break it make their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from kube_cluster import KubeCluster, kube_cluster


@pytest.fixture(scope="session")
def kube() -> Iterator[KubeCluster]:
    with TemporaryDirectory(prefix="bxk-") as folder, kube_cluster(Path(folder) / "k") as one:
        yield one
