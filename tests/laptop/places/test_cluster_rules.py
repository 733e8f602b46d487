from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plans import make_plan

from boxcar.laptop.places import cluster_rules
from boxcar.laptop.project.profiles.slurm_options import SlurmOptions
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.laptop.verbs.audit import row_word
from boxcar.shared.sentence import in_language
from boxcar.shared.wire.cluster_asks import SlurmFacts, SlurmTried

QUEUES = {0: "queue_1", 1: "queue_2"}


def facts(**changes: Any) -> SlurmFacts:
    gpu = {"MaxTime": "1-00:00:00", "State": "UP", "Default": "YES"}
    usual: dict[str, Any] = {
        "version": "22.05.8",
        "max_array_size": 1001,
        "partitions": {"gpu": gpu, "long": {"MaxTime": "UNLIMITED", "State": "UP"}},
        "defaults": ("gpu",),
        "refusals": {},
        "tier_problem": None,
        "credentials_problem": None,
    }
    return SlurmFacts(**(usual | changes))


def rows(given: SlurmFacts, queues: dict[int, str] | None = None, **options: Any) -> dict[str, str]:
    """The verdict of each row by what it is about."""
    job = BatchJob("run_slurm.sh", SlurmOptions(**options), queues or QUEUES)
    plan = make_plan(resume="latest.pth")
    return {row.what: row.verdict for row in cluster_rules.judge_cluster(given, [job], plan, "hpc")}


def test_what_the_cluster_allows_is_fine() -> None:
    assert set(rows(facts(), time="10:00:00").values()) == {"ok"}


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"time": "2-00:00:00"}, "refuse"),  # of the default partition
        ({"time": "2-00:00:00", "partition": "gpu"}, "refuse"),
        ({"time": "2-00:00:00", "partition": "long"}, "ok"),
        ({"time": "1-00:00:00", "partition": "gpu"}, "ok"),
        ({}, "warn"),
    ],
)
def test_a_limit_that_the_partition_does_not_allow_is_refused_as_sbatch_would_not(
    options: dict[str, str], verdict: str
) -> None:
    found = rows(facts(), **options)
    assert found.get("time", "ok") == verdict


def test_what_sbatch_has_against_it_is_said_in_its_words() -> None:
    said = {"run_slurm.sh": "sbatch: error: invalid partition specified: gup"}
    job = BatchJob("run_slurm.sh", SlurmOptions(partition="gup", time="60"), QUEUES)
    found = cluster_rules.judge_cluster(facts(refusals=said), [job], make_plan(), None)
    [row] = [row for row in found if row.verdict == "refuse"]
    assert row.box == "box-a, box-b" and "invalid partition specified: gup" in str(row.reason)


def test_more_queues_than_an_array_may_have_are_refused() -> None:
    assert rows(facts(max_array_size=1), time="60")["array"] == "refuse"
    assert "array" not in rows(facts(max_array_size=2), time="60")


def test_a_place_that_cannot_be_written_and_a_partition_that_is_down_are_told() -> None:
    down = {"gpu": {"MaxTime": "1:00:00", "State": "DOWN"}}
    found = rows(facts(tier_problem="it is not there", partitions=down), time="30")
    assert (found["durable tier"], found["partition"]) == ("refuse", "warn")


def test_without_a_checkpoint_a_time_limit_costs_the_cell() -> None:
    job = BatchJob("run_slurm.sh", SlurmOptions(time="60"), QUEUES)
    found = cluster_rules.judge_cluster(facts(), [job], make_plan(resume=None), None)
    assert [row.verdict for row in found if row.what == "resume"] == ["warn"]


def of_nodes(tried: SlurmTried, **options: Any) -> dict[str, str]:
    job = BatchJob("run_slurm.sh", SlurmOptions(**options), QUEUES)
    rows = cluster_rules.judge_nodes(tried, job, make_plan())
    return {row.what: row.verdict for row in rows}


TRIED = SlurmTried(("n1", "n2"), "3.12", 1, 2**30, True, "works", None)


def test_what_a_short_job_saw_on_two_nodes_is_judged() -> None:
    assert set(of_nodes(TRIED, gres="gpu:1").values()) == {"ok"}
    assert of_nodes(replace(TRIED, gpus=0), gres="gpu:1")["GPUs"] == "refuse"
    assert of_nodes(replace(TRIED, shm_free_bytes=2**20))["/dev/shm"] == "warn"
    assert of_nodes(replace(TRIED, is_one_winner=False))["claims"] == "refuse"
    assert of_nodes(replace(TRIED, flock="lies"))["file locks"] == "ok"
    assert of_nodes(replace(TRIED, problem="n1: /x: full"))["tier from nodes"] == "refuse"


def test_a_full_cluster_refuses_nothing() -> None:
    assert of_nodes(replace(TRIED, nodes=(), problem="no node")) == {"node": "warn"}


def test_a_node_that_was_given_and_did_not_run_python_is_refused() -> None:
    silent = replace(TRIED, nodes=(), silent=("n1",), problem="/x/python: No such file")
    assert of_nodes(silent) == {"node": "refuse"}
    assert of_nodes(replace(TRIED, silent=("n3",), problem="n3: why"))["node"] == "refuse"


def test_a_hook_that_fails_is_a_warning() -> None:
    assert of_nodes(replace(TRIED, hook_problem="module: command not found"))["hook"] == "warn"
    assert "hook" not in of_nodes(TRIED)


def test_every_row_is_said_in_both_languages() -> None:
    jobs = [
        BatchJob("run_slurm.sh", SlurmOptions(time="2-00:00:00", gres="gpu:1"), {1001: "queue_1"})
    ]
    jobs += [BatchJob("run_slurm.sh", SlurmOptions(), QUEUES)]
    plan, tried = (
        make_plan(resume=None),
        SlurmTried(("n1", "n2"), "3.11", 0, 2**30, True, "lies", None),
    )
    found = cluster_rules.judge_cluster(facts(), jobs, plan, None)
    for one in (
        tried,
        replace(tried, flock=None),
        replace(tried, nodes=(), problem="busy"),
        replace(tried, silent=("n3",), hook_problem="no"),
    ):
        found += cluster_rules.judge_nodes(one, jobs[0], plan)
    left = [
        text
        for row in found
        for text in (row_word(row.what), row.found, row.reason)
        if " " in text and in_language(text, "zh") == text and not text.startswith(("--", "/"))
    ]
    assert left == []
