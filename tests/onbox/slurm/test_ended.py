"""When the job of another member of a pool counts as ended: by Slurm's word, and in no doubt."""

from __future__ import annotations

from pathlib import Path

import pytest
from pretended import RELEASE, Pretended

from boxcar.shared.slurm.lease import ENDED, Lease
from boxcar.shared.slurm.submitted import HAS_NODES, WAITS, Task
from onbox.slurm import ended

OWNER = Lease("q@a", "7", "0", 0, "n1", "2026-11-29T01:00:00.000Z")


def task(state: str, name: str = "7_0", queue: str | None = "q@a") -> Task:
    return Task(name, queue, state, "", None, "n1", RELEASE)


@pytest.mark.parametrize("state", ENDED)
def test_what_squeue_calls_ended_has_ended(slurm: Pretended, state: str) -> None:
    assert ended.of_queue(OWNER, [task(state), task("RUNNING", "7_1", "q@b")]) == state


@pytest.mark.parametrize("state", [*WAITS, *HAS_NODES, "SOMETHING_NEW"])
def test_no_other_state_is_an_end(slurm: Pretended, state: str) -> None:
    assert ended.of_queue(OWNER, [task(state)]) is None


def test_a_queue_whose_next_start_is_to_come_has_not_ended(slurm: Pretended) -> None:
    assert ended.of_queue(OWNER, [task("TIMEOUT"), task("PENDING", "8_0")]) is None
    nobody_knows_whose = task("PENDING", "9_0", queue=None)
    assert ended.of_queue(OWNER, [task("TIMEOUT"), nobody_knows_whose]) is None


def say(slurm: Pretended, program: str, words: str, code: int = 0) -> None:
    path = slurm.folder / "bin" / program
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{words}'\nexit {code}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("sacct", "scontrol", "how"),
    [
        (("7_0|NODE_FAIL\n7_1|RUNNING", 0), ("", 1), "NODE_FAIL"),
        (("7_0|PREEMPTED\n7_0|CANCELLED by 0", 0), ("", 1), "CANCELLED"),
        (("7_0|TIMEOUT\n7_0|RUNNING", 0), ("JobState=RUNNING Reason=None", 0), None),
        (("Slurm accounting storage is disabled", 1), ("JobState=FAILED Reason=None", 0), "FAILED"),
        (("disabled", 1), ("slurm_load_jobs error: Invalid job id specified", 1), "FORGOTTEN"),
        (("disabled", 1), ("Job 7_0 not found", 1), "FORGOTTEN"),
        (("disabled", 1), ("error: Unable to contact slurm controller (connect failure)", 1), None),
        (("disabled", 1), ("JobState=COMPLETING Reason=None", 0), None),
        (("disabled", 1), ("", 0), None),
    ],
)
def test_of_what_squeue_has_no_more_others_are_asked(
    slurm: Pretended, sacct: tuple[str, int], scontrol: tuple[str, int], how: str | None
) -> None:
    say(slurm, "sacct", *sacct)
    say(slurm, "scontrol", *scontrol)
    assert ended.of_queue(OWNER, []) == how


def test_where_slurm_has_no_programs_nothing_has_ended(
    slurm: Pretended, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("onbox.slurm.commands._USUAL", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ended.of_queue(OWNER, []) is None
