from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_on_disk import RELEASE, RunOnDisk, make_run

from boxcar.laptop.project import launches
from boxcar.shared import timestamp
from boxcar.shared.errors import DamagedError


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_run(tmp_path)


def test_every_launch_is_a_line_and_none_is_ever_changed(run: RunOnDisk) -> None:
    path = run.project.results.root / launches.LAUNCHES
    launches.append_launch(
        run.project.results, "local", RELEASE, ["queue_1", "queue_2"], is_smoked=False
    )
    first = path.read_bytes()
    launches.append_launch(run.project.results, "local", RELEASE, ["queue_1"], is_smoked=True)
    assert path.read_bytes().startswith(first)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["is_smoked"] for record in records] == [False, True]
    assert [record["queues"] for record in records] == [["queue_1", "queue_2"], ["queue_1"]]
    assert {(record["release"], record["profile"]) for record in records} == {(RELEASE, "local")}
    assert all(timestamp.parse_utc(record["at"]) for record in records)


def test_it_lies_with_the_results_which_outlive_the_boxes(run: RunOnDisk) -> None:
    launches.append_launch(run.project.results, "local", RELEASE, ["queue_1"], is_smoked=True)
    (found,) = run.project.root.rglob(launches.LAUNCHES)
    assert found.parent == run.project.results.root


def test_each_launch_that_was_written_whole_names_its_profile(run: RunOnDisk) -> None:
    path = run.project.results.root / launches.LAUNCHES
    assert launches.profiles_of(run.project.results) == []
    launches.append_launch(run.project.results, "local", RELEASE, ["queue_1"], is_smoked=True)
    path.write_bytes(path.read_bytes() + b'{"profile": "autodl"}\n{"profile": "run')
    assert launches.profiles_of(run.project.results) == ["local", "autodl"]


def test_a_line_that_was_torn_before_another_launch_hides_no_other(run: RunOnDisk) -> None:
    path = run.project.results.root / launches.LAUNCHES
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"profile": "a"}\n{"profi{"profile": "b"}\n{"profile": "c"}\n')
    assert launches.profiles_of(run.project.results) == ["a", "c"]


def test_a_launch_after_one_that_was_killed_in_its_line_is_a_line_of_its_own(
    run: RunOnDisk,
) -> None:
    """As seen: the next launch went on in the torn line, and every verb was refused after it."""
    path = run.project.results.root / launches.LAUNCHES
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"profile": "a"}\n{"profi')
    launches.append_launch(run.project.results, "b", RELEASE, ["queue_1"], is_smoked=True)
    assert launches.profiles_of(run.project.results) == ["a", "b"]
    assert path.read_bytes().startswith(b'{"profile": "a"}\n{"profi\n{"at"')


@pytest.mark.parametrize("line", [b"[]\n", b"{}\n", b"launched\n"])
def test_a_line_that_is_no_launch_is_damage_and_no_profile(run: RunOnDisk, line: bytes) -> None:
    path = run.project.results.root / launches.LAUNCHES
    path.parent.mkdir(parents=True)
    path.write_bytes(line)
    with pytest.raises(DamagedError, match=r"launches\.jsonl"):
        launches.profiles_of(run.project.results)


def test_what_no_smoke_knows_is_in_the_line(run: RunOnDisk) -> None:
    path = run.project.results.root / launches.LAUNCHES
    launches.append_launch(
        run.project.results,
        "local",
        RELEASE,
        ["queue_1"],
        is_smoked=True,
        not_tried=6,
        skipped={"fsdp_2": "needs two GPUs"},
    )
    record = json.loads(path.read_text())
    assert (record["not_tried"], record["skipped"]) == (6, {"fsdp_2": "needs two GPUs"})
