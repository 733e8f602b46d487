"""One file that nobody can read hides no other damage from who repairs."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run
from run_on_disk import cell_started, cell_verified

from boxcar.shared.disk import digest
from onbox.answers import damages

RELEASE = "ab" * 32
FILES = (
    "journal/q1.jsonl", "claims/a.json", "cells/a/manifest.json", "cells/a/receipt.json",
    "accepted/a.json", f"releases/{RELEASE}/release.json", "heartbeat/q1.json",
    "delivered/q1.json",
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    run: FinishedRun = make_run(tmp_path)
    for cell in ("a", "b"):
        sha256 = digest.of_file(run.site.tier.manifest(cell))
        run.say("q2", cell_started(cell), cell_verified(cell, sha256))
    return run


def as_a_folder(path: Path) -> None:
    (path / "deep").mkdir(parents=True)


def as_a_circle(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path.name)


@pytest.mark.parametrize("spoil", [as_a_folder, as_a_circle])
@pytest.mark.parametrize("name", FILES)
def test_what_cannot_be_read_is_named_and_hides_no_other(run, name, spoil) -> None:
    tier = run.site.tier
    path = tier.root / name
    if path.is_file():
        path.unlink()
    spoil(path)
    others = [tier.manifest("b"), tier.heartbeat("q9"), tier.delivered("q9"), tier.accepted("b")]
    for other in others:
        other.write_bytes(b"{")
    found = {one.path: one.problem for one in damages.find(tier, {})}
    assert {str(other.relative_to(tier.root)) for other in others} <= found.keys()
    if spoil is as_a_folder:
        assert {name, name.rpartition("/")[0]} & found.keys()
