"""A run that the code before version 2 of the journal began, and this code brings to its end.

`data/v1-run` is such a run as it lay on the disk: a and d are verified and pulled, the agent of q1
was killed while b ran, c waits, and `b-ended` is what b left when its attempt ended. Left out is
what is large and not read again: the agent's file and the training zip of its release.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from living import kill_all
from run_on_disk import held
from tiny_project import TinyProject

from onbox.machine import process

DATA = Path(__file__).parents[1] / "data" / "v1-run"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[TinyProject]:
    run = TinyProject(tmp_path / "project")
    shutil.copytree(DATA / "project", run.root)
    shutil.copytree(DATA / "local", run.root / ".boxcar" / "local")
    yield run
    kill_all(run.root)


def be_wrapper_of_b(run: TinyProject, pid: int) -> None:
    """From now on the process is taken for the wrapper that an agent of then had started."""
    path = run.box("box-a") / "cells" / "b" / "running.json"
    own = {"pid": pid, "start_time": process.start_time(pid), "boot_id": process.boot_id()}
    path.write_text(json.dumps(json.loads(path.read_text()) | own))


def end_b(run: TinyProject) -> None:
    shutil.copytree(DATA / "b-ended", run.box("box-a") / "cells" / "b", dirs_exist_ok=True)


def test_a_run_of_the_version_before_is_watched_adopted_pulled_verified_and_taken_down(run):
    before = (run.tier / "journal" / "q1.jsonl").read_bytes()
    with held(run.box("box-a") / "cells" / "b" / "b.log") as wrapper:
        be_wrapper_of_b(run, wrapper.pid)
        status = run.boxcar("status", "--json").document
        words = {cell["cell"]: cell["state"] for cell in status["cells"]}
        assert words == {"a": "verified", "b": "running", "c": "queued", "d": "verified"}
        run.boxcar("launch").ended(0)
        run.wait_for_event("q1", "queue.started")
        end_b(run)
    run.boxcar("watch").ended(0)
    after = (run.tier / "journal" / "q1.jsonl").read_bytes()
    assert after.startswith(before)
    assert {event["v"] for event in run.events("q1")} == {1, 2}
    assert [e["data"]["attempt"] for e in run.events("q1") if e["type"] == "cell.started"] == [
        *(1, 1, 1)
    ], "b was adopted, and not started again"
    run.boxcar("pull").ended(0)
    verify = run.boxcar("verify", "--json").ended(0).document
    assert {cell["cell"]: cell["state"] for cell in verify["cells"]} == dict.fromkeys(
        "abcd", "verified"
    )
    run.boxcar("down", typed="tiny").ended(0)
    assert not run.tier.exists()
    assert json.loads((run.results / "teardown.json").read_text())["finished_at"]
