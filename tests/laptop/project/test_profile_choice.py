from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxcar.door.run_verb import Settings, Where, typed_project
from boxcar.laptop.common import home
from boxcar.laptop.common.home import Home
from boxcar.laptop.project import launches
from boxcar.laptop.project.job import Job, read_job
from boxcar.laptop.project.profile_choice import (
    AUDITED,
    FILE,
    PUSHED,
    SMOKED,
    Choice,
    choose_profile,
    remember_profile,
)
from boxcar.laptop.project.project import open_project
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.paths import ResultPaths


def write_project(root: Path) -> Path:
    (root / "queues").mkdir()
    for name in ("train.py", "a.json"):
        (root / name).touch()
    (root / "queues/q1.txt").write_text("a.json recon 2\n")
    job = root / "job.yaml"
    job.write_text(
        "name: run-1\ncommand: train.py --config {cfg} --out {out}\n"
        "queues: {queues/q1.txt: box-a}\nartifacts: [best.pth]\n"
    )
    return job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return read_job(write_project(tmp_path))


@pytest.fixture
def results(tmp_path: Path) -> ResultPaths:
    return ResultPaths(tmp_path / "results", "run-1")


def chosen(job: Job, results: ResultPaths, named: str = "", default: str = "") -> Choice:
    root = results.root.parent.parent
    return choose_profile(job, root, results, named=named, default=default, kinds=["local", "ssh"])


def launched(results: ResultPaths, profile: str) -> None:
    launches.append_launch(results, profile, "r", ["q1"], is_smoked=True)


@pytest.mark.parametrize("done", [AUDITED, SMOKED, PUSHED])
def test_a_run_that_was_taken_elsewhere_is_not_started_here_because_a_flag_was_forgotten(
    job: Job, results: ResultPaths, done: str
) -> None:
    remember_profile(results, "autodl", done)
    found = chosen(job, results)
    assert found.profile == "autodl" and found.why == f"this run was first {done} with it"
    assert chosen(job, results, default="local").profile == "autodl"
    assert chosen(job, results, named="local").profile == "local", "this is the word for it"
    launched(results, "local")
    assert chosen(job, results).profile == "autodl", "each time"


def test_the_first_is_remembered_and_the_last_launch_counts_more(
    job: Job, results: ResultPaths
) -> None:
    for profile in ("local", "autodl", "runpod"):
        remember_profile(results, profile, AUDITED)
    assert chosen(job, results).profile == "autodl"
    launched(results, "vastai")
    launched(results, "local")
    assert chosen(job, results).sentence == "profile vastai: this run was launched with it"


def test_what_nobody_took_elsewhere_follows_the_settings_and_then_stays_here(
    job: Job, results: ResultPaths
) -> None:
    assert chosen(job, results) == Choice(
        "local", "this machine, as no other is named for this run"
    )
    assert "invoke.yaml" in chosen(job, results, default="ssh").why
    launched(results, "local")
    assert chosen(job, results).why == "this run was launched here"
    assert chosen(job, results, default="ssh").profile == "ssh"


def test_a_run_whose_results_were_removed_stays_where_it_was_launched(
    job: Job, results: ResultPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home.remember_run("another", tmp_path / "job.yaml", "runpod")
    home.remember_run("run-1", tmp_path / "elsewhere" / "job.yaml", "runpod")
    assert chosen(job, results).profile == "local", "these are other runs"
    for profile in ("vastai", "local"):
        home.remember_run("run-1", tmp_path / "job.yaml", profile)
    found = chosen(job, results, default="local")
    assert found.profile == "vastai" and "(runs.jsonl)" in found.why
    assert chosen(job, results, named="local").profile == "local", "this is the word for it"


def test_where_only_a_box_of_the_job_is_known_nothing_starts_here_unnamed(
    job: Job, results: ResultPaths, tmp_path: Path
) -> None:
    host = Home(tmp_path).host("box-a")
    host.parent.mkdir(parents=True)
    host.write_text("{}")
    with pytest.raises(InputError, match=r"box-a was once reached over ssh.*--profile local"):
        chosen(job, results)
    assert chosen(job, results, named="local").profile == "local"
    assert chosen(job, results, default="ssh").profile == "ssh"
    launched(results, "local")
    assert chosen(job, results).why == "this run was launched here"


def test_candidates_come_after_all_that_was_done(tmp_path: Path, results: ResultPaths) -> None:
    path = write_project(tmp_path)
    path.write_text(path.read_text() + "candidates: [local]\n")
    assert chosen(read_job(path), results).why == "the first of the job's candidates that fits"


def test_a_record_that_cannot_be_read_is_never_taken_for_none(
    job: Job, results: ResultPaths
) -> None:
    remember_profile(results, "autodl", SMOKED)
    (results.root / FILE).write_bytes(b"{}")
    with pytest.raises(DamagedError, match=r"profile\.json.*--profile"):
        chosen(job, results)
    assert chosen(job, results, named="autodl").profile == "autodl"


def test_a_project_says_why_it_has_its_profile(tmp_path: Path, results: ResultPaths) -> None:
    path = write_project(tmp_path)
    remember_profile(results, "ssh", AUDITED)
    words: dict[str, Any] = {"kinds": ["local", "ssh"]}
    assert open_project(path, **words).why == "profile ssh: this run was first audited with it"
    assert open_project(path, "local", **words).why == "profile local: set by --profile"


def test_the_first_line_of_a_verb_says_which_profile_and_why(
    tmp_path: Path, results: ResultPaths, capsys: pytest.CaptureFixture[str]
) -> None:
    where = Where("", "", Settings(profile="local", job=str(write_project(tmp_path))))
    remember_profile(results, "ssh", SMOKED)
    typed_project(where)
    assert capsys.readouterr().err == "profile ssh: this run was first smoked with it\n"
    typed_project(where, is_quiet=True)
    assert capsys.readouterr().err == "", "cron mails every word"
