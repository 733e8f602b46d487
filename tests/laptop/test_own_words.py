"""What a person's own script and log say is shown as it is, also where it speaks of `invoke`."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_run import make_run as make_finished_run
from run_on_disk import RunOnDisk, agent_started, cell_started, make_run
from tiny_project import make_project

from boxcar.laptop.common import show
from boxcar.laptop.project.project import open_project
from boxcar.laptop.results.failed_logs import pull_failed_logs
from boxcar.laptop.verbs import status, verify
from boxcar.laptop.verbs.explain import explain
from boxcar.laptop.verbs.logs import logs
from boxcar.laptop.verbs.smoke import smoke
from boxcar.shared import errors
from boxcar.shared.files.receipt import Finding
from boxcar.shared.process.load_child import Loaded

REASON = "could not invoke kernel fused_adam (see invoke docs, or invoke status)"
OWN = f"RuntimeError: {REASON}"
FAILED = {"cell": "a", "attempt": 1, "failure": "EXIT1", "reason": OWN, "rc": 1, "is_final": True,
          "seconds": 1.0, "release": "ab" * 32}  # fmt: skip


@pytest.fixture(autouse=True)
def boxcar_with_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """As somebody who typed `boxcar ... --job other.yaml` sees it."""
    errors.type_as("boxcar")
    monkeypatch.setattr(show, "_flags", [])
    show.remember_flags("", "other.yaml")


@pytest.fixture
def failed_run(tmp_path: Path) -> RunOnDisk:
    run = make_run(tmp_path)
    run.say("queue_1", agent_started(), cell_started("a"), ("cell.failed", FAILED))
    log = run.project.scratch("box-a").log("a")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"{OWN}\n")
    return run


def test_smoke_shows_the_log_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "project"
    job = {"command": "train.py {cfg} {task} {out}", "smoke": "--x", "resume": None}
    make_project(root, {"q1": ["configs/a.json recon 1"]}, **job)
    (root / "train.py").write_text(f"raise RuntimeError({REASON!r})\n")
    assert smoke(open_project(root / "job.yaml", "local")) == 1
    said = capsys.readouterr().err
    assert OWN in said
    assert said.endswith("1 of 1 cell failed. Fix it, then: boxcar smoke --job other.yaml\n")


def test_explain_shows_the_reason_as_it_is(
    failed_run: RunOnDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    explain(failed_run.project, cell="a")
    said = capsys.readouterr()
    assert said.out.count(OWN) == 2  # its state, and its history
    assert "next: boxcar logs --job other.yaml --cell a" in said.err


def test_status_shows_the_reason_as_it_is_and_the_next_command_as_it_is_typed(
    failed_run: RunOnDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    failed_run.say("queue_1", ("box.warning", {"what": "log", "text": OWN}))
    status.status(failed_run.project)
    said = capsys.readouterr()
    assert OWN in said.out
    assert "next: boxcar launch --job other.yaml" in said.err


def test_logs_shows_the_log_as_it_is(
    failed_run: RunOnDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert logs(failed_run.project, cell="a") == 0
    assert capsys.readouterr().out == f"{OWN}\n"


def test_the_log_of_a_failed_cell_comes_and_is_shown_as_it_is(
    failed_run: RunOnDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [cell for cell in failed_run.look().cells if cell.name == "a"]
    pull_failed_logs(failed_run.site, cells)
    path = failed_run.project.results.failed_log("a")
    failed_run.project.scratch("box-a").log("a").unlink()
    assert path.read_text() == f"{OWN}\n"
    assert logs(failed_run.project, cell="a") == 0
    assert capsys.readouterr().out == f"{OWN}\n"


def test_verify_shows_a_finding_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_finished_run(tmp_path, cells=("a",))
    run.copy_here()
    found = Finding("a/weights.dat", "torch", (OWN,))
    monkeypatch.setattr(verify, "load", lambda *words: Loaded({"a/weights.dat": found}))
    assert verify.verify(run.project) == 1
    said = capsys.readouterr().err
    assert f"a: weights.dat: {OWN}: boxcar explain --job other.yaml --cell a\n" in said
