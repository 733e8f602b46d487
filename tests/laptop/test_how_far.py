"""Where no terminal is, what takes long says how far it is while it is under way."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finished_run import make_run
from tiny_project import make_project
from waiting import until

from boxcar.laptop.common import progress, show
from boxcar.laptop.project.project import open_project
from boxcar.laptop.release.build import build
from boxcar.laptop.results import compare
from boxcar.laptop.tryout import one_try
from boxcar.laptop.verbs import audit, verify
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.push import push
from boxcar.laptop.verbs.smoke import smoke

MB = 1 << 20
# Less than all of it, with the speed, the time that is left, and whose it is.
UNDER_WAY = r": [\d.]+ .?B of \d\.\d MB \(\d?\d %\), [\d.]+ .?B/s, \d+s left.*\b{}\b"
needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines, which come at once and all the time."""
    lines: list[str] = []
    monkeypatch.setattr(progress, "FIRST_S", 0.01)
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    monkeypatch.setattr(show, "say", lambda message: lines.append(str(message)))
    return lines


@pytest.fixture
def slow_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four megabytes a second."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "rsync"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("rsync")} --bwlimit=4m "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def has_line(said: list[str], pattern: str) -> bool:
    return any(re.match(pattern, line) for line in said)


def holds(said: list[str], line: str, then: Callable[..., Any]) -> Callable[..., Any]:
    """`then`, but not before the line was said: for ever where nothing is."""

    def held(*words: Any, **more: Any) -> Any:
        until(lambda: has_line(said, line), lambda: f"{line} in {said}")
        return then(*words, **more)

    return held


@needs_rsync
@pytest.mark.usefixtures("slow_link")
def test_a_pull_over_a_slow_link(tmp_path: Path, said: list[str]) -> None:
    run = make_run(tmp_path / "run", ("big",), ("weights.dat", "metrics.json"))
    run.publish("big", {"weights.dat": os.urandom(2 * MB), "metrics.json": b"{}"})
    assert pull(run.project) == 0
    assert has_line(said, "pull" + UNDER_WAY.format("big")), said


@needs_rsync
@pytest.mark.usefixtures("slow_link")
def test_a_push_over_a_slow_link(tmp_path: Path, said: list[str]) -> None:
    tiny = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]})
    (tiny.root / "big.npy").write_bytes(os.urandom(2 * MB))
    assert push(open_project(tiny.root / "job.yaml", "local")) == 0
    assert has_line(said, "push" + UNDER_WAY.format("box-a")), said


def test_a_smoke_names_the_cell_at_work(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]}, smoke="--limit 1")
    monkeypatch.setattr(
        one_try, "make_try", holds(said, r"smoke: 0 of 1 .*\ba\b", one_try.make_try)
    )
    smoke(open_project(tiny.root / "job.yaml", "local"))


def test_verify_counts_what_it_hashes_and_what_it_loads(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path)
    run.copy_here()
    hashing, loading = (
        r"hashing the files: 0 B of 20\.\d kB \(0 %\)",
        r"loading the files: 0 of 4 \(0 %\), .*a/",
    )
    monkeypatch.setattr(compare, "gather", holds(said, hashing, compare.gather))
    monkeypatch.setattr(verify, "load", holds(said, loading, verify.load))
    verify.verify(run.project)


def test_an_audit_names_the_boxes_that_have_not_answered(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]})
    monkeypatch.setattr(audit, "_ask", holds(said, r"audit: 0 of 1 .*box-a", audit._ask))
    audit.audit(open_project(tiny.root / "job.yaml", "local"))


def test_a_push_says_that_it_makes_the_release(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]})
    held = holds(said, "still building the release", build)
    monkeypatch.setattr("boxcar.laptop.verbs.push.build", held)
    assert push(open_project(tiny.root / "job.yaml", "local")) == 0
