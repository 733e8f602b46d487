"""One real Slurm for all tests of a worker; those that break it make their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cluster import Cluster, cluster


@pytest.fixture(scope="session")
def slurm() -> Iterator[Cluster]:
    # A short path: that of munge's socket may have 107 bytes.
    with TemporaryDirectory(prefix="bxs-") as folder, cluster(Path(folder) / "c") as one:
        yield one
