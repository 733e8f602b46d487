"""End to end: a project folder, the real command line, real processes; nothing is left running; and
each `--json` document is held against its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import published_schemas
import pytest
from living import kill_all
from tiny_project import MakeProject, make_project

published_schemas.hold_all()


@pytest.fixture(autouse=True)
def _nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    kill_all(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> MakeProject:
    """Makes a project in a folder of the test's own: `project({"q1": ["configs/a.json one"]})`."""
    return lambda queues, **job: make_project(tmp_path / "project", queues, **job)
