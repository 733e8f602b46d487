from __future__ import annotations

from dataclasses import replace

import pytest
from pretended import Pretended

from boxcar.shared.slurm.lease import Lease
from onbox.slurm import ended

AT = "2026-11-22T10:00:00.000Z"
BEFORE = Lease("queue_1", "7", "0", 0, "n1", AT)
AGAIN = replace(BEFORE, restarts=1)
OTHER = replace(BEFORE, job="9")
# Of a real sacct 22.05, with -D: each start of a task is a row.
SACCT = "7_0|NODE_FAIL\n7_0|PREEMPTED\n7_0|RUNNING\n7_1|CANCELLED by 0\n"


def sacct(slurm: Pretended, text: str, code: int = 0) -> None:
    program = slurm.folder / "bin" / "sacct"
    program.write_text(f"#!/bin/sh\ncat <<'X'\n{text}X\nexit {code}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("before", "state"),
    [
        (BEFORE, "NODE_FAIL"),
        (AGAIN, "PREEMPTED"),
        (replace(BEFORE, restarts=2), None),  # it runs
        (replace(BEFORE, task="1"), "CANCELLED"),
        (replace(BEFORE, restarts=5), None),
    ],
)
def test_sacct_says_how_each_start_of_a_task_ended(before: Lease, state: str | None) -> None:
    assert ended.in_sacct(SACCT, before) == state


def test_with_accounting_it_is_asked_first(slurm: Pretended) -> None:
    sacct(slurm, SACCT)
    assert ended.state_of(BEFORE, AGAIN, slurm.tier) == "NODE_FAIL"


def test_without_accounting_an_earlier_start_was_queued_again_and_squeue_knows_another_job(
    slurm: Pretended,
) -> None:
    sacct(slurm, "Slurm accounting storage is disabled\n", code=1)
    assert ended.state_of(BEFORE, AGAIN, slurm.tier) == "REQUEUED"
    slurm.has("7|0|7_0|OUT_OF_MEMORY|N/A|n1|None", "9|0|9_0|RUNNING|N/A|n1|None")
    assert ended.state_of(BEFORE, OTHER, slurm.tier) == "OUT_OF_MEMORY"
    slurm.has("9|0|9_0|RUNNING|N/A|n1|None")
    assert ended.state_of(BEFORE, OTHER, slurm.tier) is None


def test_a_silent_slurm_and_a_script_that_came_to_its_end_tell_nothing(slurm: Pretended) -> None:
    slurm.mood("squeue", "silent")
    sacct(slurm, "", code=1)
    assert ended.state_of(BEFORE, OTHER, slurm.tier) is None
    for state in ("COMPLETED", "FAILED"):
        assert ended.in_sacct(f"7_0|{state}\n", BEFORE) is None
        assert ended.in_squeue({"7_0": state}, BEFORE) is None
