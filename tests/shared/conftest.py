"""What several tests need: a real disk that is small, and a real process that dies."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import LIMIT_S

_FORK = multiprocessing.get_context("fork") if hasattr(os, "fork") else None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """`small_disk("size=2m")`: a file system of its own with these tmpfs options, or a skip."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if sys.platform != "linux" or os.geteuid() != 0:
            pytest.skip("only root on Linux may mount a small disk")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def in_child() -> Callable[[Callable[[], object]], int]:
    """Run a function in a forked process and give its exit code: 0, or what it died of."""

    def run(job: Callable[[], object]) -> int:
        assert _FORK, "these tests need fork"
        child = _FORK.Process(target=job)
        child.start()
        child.join(LIMIT_S)
        assert child.exitcode is not None, "the child did not end within 60 s"
        return child.exitcode

    return run
