"""All runs of a person, as they stand here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from journal_lines import chained
from run_on_disk import (
    MANIFEST,
    SHA256,
    agent_started,
    cell_failed,
    cell_started,
    cell_verified,
    from_now,
    make_run,
)

from boxcar.laptop.common import home
from boxcar.laptop.common.home import Home
from boxcar.laptop.project import launches
from boxcar.laptop.project.project import open_project
from boxcar.laptop.release.build import build
from boxcar.laptop.verbs import runs as runs_module
from boxcar.laptop.verbs.runs import runs, state_of
from boxcar.shared.files import codec
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.receipt import CellVerdict, RunReceipt, Teardown


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def project(root: Path, name: str) -> Path:
    """A job of one cell that somebody launched from this folder."""
    (root / "queues").mkdir(parents=True)
    (root / "train.py").write_text("")
    (root / "queues" / "q.txt").write_text("- recon 3\n")
    job = {
        "name": name,
        "command": "train.py",
        "launcher": "python",
        "queues": {"queues/q.txt": "box-a"},
        "artifacts": ["m.json"],
    }
    (root / "job.yaml").write_text(yaml.safe_dump(job))
    return root / "job.yaml"


def launched(job: Path) -> str:
    """Leave here what a launch of this job does; the release's digest."""
    found = open_project(job, "local")
    described, _ = build(found, print)
    launches.append_launch(found.results, "local", described.digest, ["q"], is_smoked=True)
    home.remember_run(found.plan.run, job, "local")
    return described.digest


def rename(job: Path, name: str, box: str) -> None:
    """Give the job file to the next sweep, on another box."""
    words = yaml.safe_load(job.read_text()) | {"name": name, "queues": {"queues/q.txt": box}}
    job.write_text(yaml.safe_dump(words))


def torn_down(root: Path, run: str) -> None:
    made = Teardown(run, "ab" * 32, "down", from_now(-60), "typed", finished_at=from_now(-50))
    (root / "results" / run).mkdir(parents=True, exist_ok=True)
    (root / "results" / run / "teardown.json").write_bytes(codec.to_document(made))


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    runs(as_json=True)
    return list(json.loads(capsys.readouterr().out)["runs"])


def test_runs_of_several_folders_stand_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        home.remember_run(name, project(tmp_path / name, name), "local")
    assert runs() == 0
    said = capsys.readouterr().out
    assert "one" in said and "two" in said and "0 of 1 verified" in said
    assert [(row["run"], row["state"], row["boxes"]) for row in rows(capsys)] == [
        ("two", "unfinished", ["box-a"]),
        ("one", "unfinished", ["box-a"]),
    ]


def test_without_a_run_the_first_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert runs() == 0
    assert "no run was launched from this machine yet" in capsys.readouterr().err


def test_a_folder_that_is_gone_is_told_because_its_boxes_may_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.remember_run("lost", tmp_path / "gone" / "job.yaml", "autodl")
    assert runs() == 1
    assert "may still be billing" in capsys.readouterr().err


def test_a_local_run_whose_folder_was_removed_is_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.remember_run("past", tmp_path / "gone" / "job.yaml", "local")
    assert runs() == 0 and rows(capsys) == []


def test_a_job_that_cannot_be_read_hides_no_other_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.remember_run("fine", project(tmp_path / "fine", "fine"), "local")
    broken = project(tmp_path / "broken", "broken")
    broken.write_text("name: [")
    home.remember_run("broken", broken, "local")
    assert runs() == 1
    assert [row["state"] for row in rows(capsys)] == ["unknown", "unfinished"]


def test_a_path_that_cannot_be_looked_at_hides_no_other_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.remember_run("fine", project(tmp_path / "fine", "fine"), "local")
    for profile in ("local", "ssh"):
        home.remember_run(profile, tmp_path / ("n" * 300) / "job.yaml", profile)
    assert runs() == 1
    assert [(row["run"], row["state"]) for row in rows(capsys)] == [
        ("ssh", "gone"),
        ("fine", "unfinished"),
    ]


def test_the_state_says_what_is_left_to_do(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    view = run.look()
    assert state_of(view) == "unfinished"
    first, queue = view.cells[0].name, view.cells[0].queue
    run.say(queue, agent_started(), cell_started(first), cell_failed(first))
    assert state_of(run.look()) == "unfinished"
    run.say(queue, cell_started(first, 2), cell_verified(first))
    only = [cell for cell in run.look().cells if cell.name == first]
    assert state_of(replace(run.look(), cells=tuple(only), queues=())) == "bring home"


@pytest.mark.parametrize("ended", ["sweep-one", "sweep-two"])
def test_a_run_whose_job_file_names_another_by_now_has_its_own_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ended: str
) -> None:
    job = project(tmp_path, "sweep-one")
    launched(job)
    rename(job, "sweep-two", "box-b")
    launched(job)
    torn_down(tmp_path, ended)
    states = {"sweep-one": "unfinished", "sweep-two": "unfinished"} | {ended: "torn down"}
    keys = ("run", "state", "boxes", "job_is_now")
    assert [tuple(row[key] for key in keys) for row in rows(capsys)] == [
        ("sweep-two", states["sweep-two"], ["box-b"], None),
        ("sweep-one", states["sweep-one"], ["box-a"], "sweep-two"),
    ]
    assert runs() == 0
    is_told = "put `name: sweep-one` back" in capsys.readouterr().err
    assert is_told is (ended == "sweep-two"), "of what is over there is nothing to be done"


def test_what_became_of_each_cell_is_said_after_the_teardown_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = project(tmp_path, "one")
    home.remember_run("one", job, "local")
    torn_down(tmp_path, "one")
    verdicts = (
        CellVerdict("a", "q", manifest_sha256="ab" * 32),
        CellVerdict("b", "q", because="a wrong flag"),
        CellVerdict("c", "q", is_dropped=True),
    )
    made = RunReceipt("one", from_now(-70), verdicts)
    (tmp_path / "results" / "one" / "receipt.json").write_bytes(codec.to_document(made))
    assert runs() == 0
    assert "torn down  1 of 2 verified, 1 abandoned" in capsys.readouterr().out
    assert rows(capsys)[0]["cells"] == {"verified": 1, "abandoned": 1, "dropped": 1}


def test_of_an_earlier_run_whose_launch_is_not_known_here_nothing_is_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = project(tmp_path, "sweep-one")
    digest = launched(job)
    rename(job, "sweep-two", "box-b")
    plan = Home(tmp_path).release(digest) / "plan.json"
    plan.chmod(0o644)
    plan.unlink()
    [row] = rows(capsys)
    assert (row["state"], row["boxes"], row["cells"]) == ("unknown", [], None)
    assert "its job file now names sweep-two" in row["problem"]
    assert runs() == 1


def test_a_run_that_verify_has_proven_is_not_to_be_brought_home_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = project(tmp_path, "one")
    launched(job)
    found = open_project(job, "local")
    manifest = found.on_tier.manifest("recon")
    manifest.parent.mkdir(parents=True)
    manifest.write_bytes(MANIFEST)
    found.on_tier.journals.mkdir()
    journal = Journal(found.on_tier.journal("q"), {"run": "one", "queue": "q", "box": "box-a"})
    for type_, data in (agent_started(), cell_started("recon"), cell_verified("recon")):
        journal.append(type_, **data)
    assert [row["state"] for row in rows(capsys)] == ["bring home"]
    for sha256, state in (("cd" * 32, "bring home"), (SHA256, "proven here")):
        seen = RunReceipt("one", from_now(0), (CellVerdict("recon", "q", sha256),))
        found.results.receipt.write_bytes(codec.to_document(seen))
        assert [row["state"] for row in rows(capsys)] == [state]


def test_what_is_known_of_no_run_is_no_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.remember_run("one", project(tmp_path / "one", "one"), "local")
    runs()
    shown = capsys.readouterr().out
    assert not {"spent", "clock", "seen"} & {*shown.split()}, "a local run is read as it is now"
    [row] = rows(capsys)
    assert (row["spent"], row["clock"]) == (None, None)


def test_spent_is_what_the_agents_time_cost_also_after_the_teardown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = project(tmp_path / "one", "one")
    job.write_text(f"{job.read_text()}price: 2.00 CNY/h\n")
    home.remember_run("one", job, "local")
    found = open_project(job, "local")
    at_work = found.on_tier.journal("q")
    at_work.parent.mkdir(parents=True)
    at_work.write_bytes(three_hours())
    [row] = rows(capsys)
    assert row["spent"] == {"CNY": pytest.approx(6.0, abs=0.1)}
    runs()
    shown = capsys.readouterr().out
    assert "6.00 CNY" in shown and "spent" in shown and "clock" not in shown
    found.results.journals.mkdir(parents=True)
    at_work.rename(found.results.journals / "q.jsonl")
    monkeypatch.setattr(runs_module, "is_torn_down", lambda results: True)
    [row] = rows(capsys)
    assert (row["state"], row["spent"]) == ("torn down", {"CNY": pytest.approx(6.0, abs=0.1)})


def three_hours() -> bytes:
    """The journal of an agent that was at work for so long."""
    type_, data = agent_started()
    said = [(type_, data, -4 * 3600), ("queue.done", {"verified": 0, "failed": 0}, -3600)]
    common = {"run": "one", "queue": "q", "box": "box-a"}
    return chained(
        Event(seq, f"evt_{seq}", from_now(at_s), name, common | more)
        for seq, (name, more, at_s) in enumerate(said, start=1)
    )
