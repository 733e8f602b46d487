"""Full and read-only disks, for real: a clear sentence, and once there is room nothing was lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_mounts import OwnMounts, own_mounts
from proof import assert_nothing_torn, assert_published_once, assert_pulled
from straced import failing_at, skip_without_strace

MB = 1_000_000
# The agent wants 64 MiB to spare beyond what it copies.
ROOM = "size=100m,nr_inodes=5000"


@pytest.fixture
def mounts() -> Iterator[OwnMounts]:
    with own_mounts() as found:
        yield found


def test_a_tier_without_room_is_refused_before_anything_is_copied(project, mounts):
    run = mounts.project(project({"q1": ["configs/a.json one"]}))
    tier = run.root / ".boxcar/local/durable"
    for options, words in (
        ("size=40m", "are free"),
        ("size=100m,nr_inodes=50", "inodes are free"),
    ):
        mounts.tmpfs(tier, options)
        said = run.boxcar("launch").ended(1)
        assert words in said.err and "are needed" in said.err
        assert not any(run.tier.rglob("release.json")) and not any(run.box("box-a").rglob("*"))
    mounts.remount(tier, ROOM)
    run.boxcar("launch").ended(0)
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["a"])


@pytest.mark.faults
@pytest.mark.parametrize("left", [20 * MB, 0])
def test_a_tier_that_fills_up_while_a_cell_runs_loses_nothing(project, mounts, left):
    run = mounts.project(project({"q1": ["configs/a.json one", "configs/b.json one"]}))
    mounts.tmpfs(run.root / ".boxcar/local/durable", ROOM)
    run.hold("a", at=1)
    run.boxcar("launch").ended(0)
    run.wait_for_step("box-a", "a", 1)
    ballast = run.local / "durable" / "ballast"
    fill(ballast, left)
    run.let_go("a")
    if left:
        full = run.wait_for("the full disk", lambda: run.warnings("q1", "disk_full"))[0]["text"]
        assert "/tiny/cells" in full and "are free" in full
        assert "The queue waits until there is room" in full
    else:
        run.wait_for(
            "the agent's word on the full disk", lambda: "No space left" in run.agent_log("q1")
        )
    assert not (run.tier / "cells/a/manifest.json").exists()
    ballast.unlink()
    run.boxcar("launch")
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["a", "b"])
    assert_nothing_torn(run)
    assert run.out("box-a", "a").joinpath("history.txt").read_text().count("start") == 1


def test_a_box_without_room_is_refused_before_anything_is_sent(project, mounts):
    run = mounts.project(project({"q1": ["configs/a.json one"]}))
    mounts.tmpfs(run.root / ".boxcar/local/boxes/box-a", "size=30m")
    said = run.boxcar("launch").ended(1)
    assert "scratch of box-a" in said.err and "are free" in said.err
    assert not run.tier.exists()
    mounts.remount(run.root / ".boxcar/local/boxes/box-a", ROOM)
    run.boxcar("launch").ended(0)
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["a"])


def test_a_read_only_tier_is_said_and_can_still_be_pulled_from(project, mounts):
    run = mounts.project(project({"q1": ["configs/a.json one"]}))
    tier, results = run.root / ".boxcar/local/durable", run.root / "results"
    mounts.tmpfs(tier, f"{ROOM},ro")
    mounts.tmpfs(results, "size=30m")
    said = run.boxcar("launch").ended(1)
    assert "Read-only file system" in said.err and str(tier) in said.err
    mounts.remount(tier, "rw")
    run.boxcar("launch").ended(0)
    run.boxcar("watch").ended(0)
    mounts.remount(tier, "ro")
    said = run.boxcar("pull").ended(1)
    assert "a was not pulled" in said.err and "are free" in said.err
    mounts.remount(results, ROOM)
    run.boxcar("pull").ended(0)
    digest = run.boxcar("verify", "--json").ended(0).document["digest"]
    assert_pulled(run, ["a"])
    refused = run.boxcar("down", "--approve", digest).ended(1)
    assert "Read-only file system" in refused.err
    assert_published_once(run, ["a"])
    mounts.remount(tier, "rw")
    run.boxcar("down", "--approve", digest).ended(0)
    assert not run.tier.exists()
    assert_pulled(run, ["a"])


@pytest.mark.parametrize(
    ("number", "cells"), [(4, "a"), pytest.param(3, "ab", marks=pytest.mark.faults)]
)
def test_a_journal_that_could_not_be_written_once_is_gone_on_with(project, number, cells):
    """A network tier says at fsync that it is full: what was written may be there, or not."""
    skip_without_strace()
    run = project({"q1": [f"configs/{cell}.json one" for cell in cells]})
    run.boxcar("push").ended(0)
    journal = run.tier / "journal" / "q1.jsonl"
    said = run.agent("q1", failing_at(number, "fsync", "ENOSPC", journal))
    assert f"{journal}: No space left on device" in said.stderr
    assert said.returncode == 0 or run.agent("q1").returncode == 0, run.told()
    assert_published_once(run, cells)
    assert_nothing_torn(run)


def fill(path: Path, left: int) -> None:
    """A file that leaves `left` bytes of its disk."""
    with path.open("wb") as file:
        try:
            while _free(path) > left:
                file.write(b"\0" * min(MB, _free(path) - left))
                file.flush()
        except OSError:
            assert left == 0


def _free(path: Path) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
