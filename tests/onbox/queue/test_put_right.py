"""A cell that left other artifacts than its job named is judged anew by the corrected one."""

from __future__ import annotations

from typing import Any

import pytest
from plans import make_plan

from boxcar.shared.files import manifest
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import Artifact, Metric, Rule
from boxcar.shared.files.release import Code, Release
from onbox.queue import acceptance

WRONG = (Artifact("m.json"), Artifact("ema.json"))
RIGHT = {"artifacts": (Artifact("m.json", ("step",)),)}
CELLS: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
OTHER = "# other code\n"


@pytest.fixture
def failed(make_run: Any) -> Any:
    run = make_run(CELLS, artifacts=WRONG)
    assert run.finish() != 0
    assert run.events("cell.failed", cell="a")[0].data["failure"] == "NO-ART"
    return run


def tries(run: Any) -> int:
    return int(run.life("a").count("started"))


def relaunch(run: Any, archives: Any, cells: Any = CELLS, *, more: str = "", **plan: Any) -> int:
    train = (run.release / "code/train.py").read_text() + more
    run.release = run.push(archives, cells, train=train, **plan)
    return int(run.finish())


def test_what_it_left_is_taken_and_nothing_is_trained_again(failed, archives):
    assert relaunch(failed, archives, **RIGHT) == 0
    assert tries(failed) == 1 and failed.state("a") == "verified"
    made = manifest.read_manifest(failed.durable.manifest("a"))
    assert made.attempt == 1 and made.release != failed.release.name
    assert "judged anew" in made.warnings[0]
    [said] = failed.events("cell.succeeded", cell="a")
    assert said.data["judged_by"] == failed.release.name


def test_of_the_corrected_job_other_metrics_and_loads_do_not_count(failed, archives):
    other = {"artifacts": (Artifact("m.json", load="bytes"),)}
    assert relaunch(failed, archives, **other, metrics=(Metric("m", "log", r"m (\S+)"),)) == 0
    assert tries(failed) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"more": OTHER},
        {"cells": {"a": {"steps": 2}, "b": {}}},
        {"job_env": {"N": "2"}},
        {"command": ("train.py", "{cfg}", "{out}", "--x")},
        {"secrets": ("TOKEN",)},
        {"rules": (Rule("a", env={"N": "2"}),)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_where_anything_else_differs_it_is_trained_again(failed, archives, other):
    relaunch(failed, archives, **{**RIGHT, **other})
    assert tries(failed) == 2
    assert all("judged_by" not in one.data for one in failed.events("cell.succeeded", cell="a"))


def test_what_still_lacks_an_artifact_is_trained_again(failed, archives):
    assert relaunch(failed, archives, artifacts=(Artifact("m.json"), Artifact("more.json"))) != 0
    assert tries(failed) == 2 and failed.state("a") == "failed"


def test_a_job_that_names_the_same_ones_takes_nothing_that_was_put_there(failed, archives):
    (failed.out("a") / "ema.json").write_text("{}")
    relaunch(failed, archives, artifacts=WRONG)
    assert tries(failed) == 2


def test_an_attempt_whose_record_is_lost_is_trained_again(failed, archives):
    failed.scratch().done("a", 1).unlink()
    assert relaunch(failed, archives, **RIGHT) == 0
    assert tries(failed) == 2


def test_job_and_queue_that_travel_with_the_code_are_none_of_it():
    plan = make_plan(queues={"q1": "box-a"})
    files = (
        "code/train.py",
        "code/job.yaml",
        "code/queues/q1.txt",
        "code/sub/job.yaml",
        "plan.json",
    )
    found = Release("r", "", "", Code(None, False), tuple(FileRecord(f, 1, "0") for f in files))
    assert [file.path for file in acceptance.code_of(found, plan)] == ["train.py", "sub/job.yaml"]
