"""The slow storms. Their projects, and the end of all that they start, are those of tests/e2e."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from living import kill_all
from tiny_project import MakeProject, make_project


@pytest.fixture(autouse=True)
def _nothing_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    kill_all(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> MakeProject:
    return lambda queues, **job: make_project(tmp_path / "project", queues, **job)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Prints of a storm reach the terminal: its seed and counts are its result."""
    with capsys.disabled():
        print()
        yield
