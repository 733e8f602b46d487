"""What one run is told of the others on its box: by real locks, real processes, real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from plans import make_plan
from waiting import until

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest, lock
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.control import AgentStart
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Code, Release
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import end, others
from onbox.machine import process


class Box:
    """The box that the run `mine` asks; `other` was started there, with a tier of its own."""

    def __init__(self, root: Path) -> None:
        self.run = RunOnBox("mine", str(root / "tier"), str(root / "box"))
        self.tier = DurablePaths(root / "other-tier", "other")
        self.scratch = ScratchPaths(root / "box", "other")
        for folder in (*self.tier.folders(), self.scratch.out("a"), self.run.scratch.root):
            folder.mkdir(parents=True)
        self.scratch.log("a").touch()
        self.started("ab" * 32)

    def started(self, release: str) -> None:
        tier, now = str(self.tier.durable_dir), timestamp.utc_now()
        start = AgentStart("other", "q1", "box", release, tier, 0, (), {}, now)
        atomic.write_whole(self.scratch.start("q1"), codec.to_document(start))

    def asks_for(self, gpus_per_cell: int | None = None, **job_env: str) -> None:
        made_of = {"job_env": job_env, "gpus_per_cell": gpus_per_cell}
        data = codec.to_document(make_plan(run="other", **made_of))
        files = (FileRecord("plan.json", len(data), digest.of_bytes(data)),)
        made = Release("other", "onbox.pyz", "training.zip", Code(None, False), files)
        folder = self.tier.release(made.digest)
        folder.mkdir()
        (folder / "plan.json").write_bytes(data)
        (folder / "release.json").write_bytes(codec.to_document(made))
        self.started(made.digest)

    def see(self, stays: dict[str, bool] | None = None) -> box_asks.OthersSeen:
        return others.answer(box_asks.SeeOthers(stays), self.run)

    def other(self, stays: dict[str, bool] | None = None) -> box_asks.OtherRun | None:
        found = [one for one in self.see(stays).runs if one.run == "other"]
        return found[0] if found else None


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@contextmanager
def held(path: Path) -> Iterator[None]:
    fd = lock.try_hold(path)
    assert fd is not None
    yield
    os.close(fd)


@contextmanager
def training(root: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with this environment, once it is there to be seen."""
    begun = root / "begun"
    code = f"import pathlib, sys; pathlib.Path({str(begun)!r}).touch(); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, env={**os.environ, **env}
    )
    try:
        until(begun.exists, "it has begun")
        yield process
    finally:
        process.communicate()


def test_a_run_that_is_at_rest_is_not_named(box):
    assert box.other() is None


def test_an_agent_is_seen_by_its_lock_wherever_its_tier_is(box):
    with held(box.tier.lock("q1")):
        assert box.other() == box_asks.OtherRun("other", ("q1",), (), {})


def test_an_attempt_is_seen_by_its_log(box):
    with held(box.scratch.log("a")):
        assert box.other() == box_asks.OtherRun("other", (), ("a",), {})


def test_a_record_that_cannot_be_read_hides_no_other(box):
    box.scratch.start("q1").write_bytes(b"{}")
    box.scratch.start("q0").write_bytes(b"\0")
    with held(box.scratch.log("a")), held(box.scratch.agent_log("q1")):
        assert box.other() == box_asks.OtherRun("other", ("q1",), ("a",), {})


def test_a_training_is_seen_by_its_environment_wherever_its_folders_are(box, tmp_path):
    words = {"BOXCAR_RUN": "far-away", "BOXCAR_CELL": "x", "CUDA_VISIBLE_DEVICES": "1"}
    with training(tmp_path, **words):
        [far] = [one for one in box.see().runs if one.run == "far-away"]
        assert far == box_asks.OtherRun("far-away", (), ("x",), {}, ("1",))


def test_what_is_the_askers_own_is_no_other(box, tmp_path):
    with training(tmp_path, BOXCAR_RUN="mine", BOXCAR_CELL="x"):
        assert "mine" not in [one.run for one in box.see().runs]


@pytest.mark.parametrize(
    ("env", "devices"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1, 0"}, ("0", "1")),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "{task}"}, None),
        ({}, None),
    ],
)
def test_the_gpus_are_those_that_its_job_asks_for(box, env, devices):
    box.asks_for(**env)
    with held(box.tier.lock("q1")):
        found = box.other()
        assert found and found.devices == devices


def test_a_run_whose_cells_take_free_gpus_under_the_locks_of_all_says_so(box, tmp_path):
    box.asks_for(gpus_per_cell=1)
    with held(box.tier.lock("q1")):
        found = box.other()
        assert found and found.takes_free_gpus
        # Somewhere else on the box are locks of its own.
        with training(tmp_path, BOXCAR_RUN="far-away", BOXCAR_CELL="x"):
            [far] = [one for one in box.see().runs if one.run == "far-away"]
            assert far.takes_free_gpus is None
    box.asks_for()
    with held(box.tier.lock("q1")):
        found = box.other()
        assert found and found.takes_free_gpus is None


def test_results_are_told_where_they_would_go_with_the_box(box, tmp_path):
    box.tier.cell("a").mkdir()
    box.tier.manifest("a").write_bytes(b"manifest")
    claim = Claim("b", "q1", "box", timestamp.utc_now())
    atomic.write_whole(box.tier.claim("b"), codec.to_document(claim))
    assert box.other() is None, "nobody asked for them"
    found = box.other({})
    assert found and found.results == {"a": digest.of_bytes(b"manifest"), "b": None}
    assert not found.is_at_work
    there = str(tmp_path / "other-tier")
    assert box.other({there: True}) is None
    assert box.other({str(tmp_path / "other"): True}), "the name of another folder begins so"
    assert box.other({"/": True, there: False}) and not box.other({"/": False, there: True})


def test_results_of_a_run_that_left_no_scratch_are_told(box):
    gone = DurablePaths(box.run.tier.durable_dir, "gone")
    gone.cell("a").mkdir(parents=True)
    assert [one.results for one in box.see({}).runs if one.run == "gone"] == [{"a": None}]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_program_on_a_gpu_that_is_no_runs_is_named(box, tmp_path, monkeypatch):
    with training(tmp_path) as child:
        smi = tmp_path / "bin" / "nvidia-smi"
        smi.parent.mkdir()
        smi.write_text(f"#!/bin/sh\nprintf '{child.pid}\\n999999999\\n'\n")
        smi.chmod(0o755)
        monkeypatch.setenv("PATH", f"{smi.parent}:{os.environ['PATH']}")
        [one] = box.see().strangers
        assert one.pid == child.pid and one.program.startswith("python")


def test_a_box_is_not_ended_beside_another_run_unless_it_is_named(box, monkeypatch):
    monkeypatch.setattr(process, "carrying", lambda name: {})  # others may train on this machine
    own = box.run.scratch.start("q1")
    own.touch()
    credentials = str(box.run.scratch.root / "credentials.json")

    def ended(beside: tuple[str, ...] | None) -> box_asks.Ended:
        return end.answer(box_asks.End((), credentials, beside), box.run)

    with held(box.tier.lock("q1")), held(box.scratch.log("a")):
        assert ended(()).alive == (
            box_asks.AtWork(queue="q1", run="other"),
            box_asks.AtWork(cell="a", run="other"),
        )
        assert own.exists()
        assert ended(("other",)).alive == () and not own.exists()
        assert ended(None).alive == ()


def test_it_is_answered_at_the_door(box):
    from onbox.answers import door

    words = {"ask": "others", "run": "mine", "stays": None}
    places = {"durable_dir": box.run.durable_dir, "data_dir": box.run.data_dir}
    assert "runs" in door.answer(json.dumps(words | places).encode())
