"""What to type next is one decision: no verb says another thing than `status`, and none leads in a
circle.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from finished_run import make_run as make_finished_run
from run_on_disk import (
    RELEASE,
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_started,
    cell_verified,
    held,
    make_run,
    queue_done,
)

from boxcar.laptop.common import show
from boxcar.laptop.common.home import Home
from boxcar.laptop.verbs import audit
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.next_step import before_launch, next_step
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.status import status
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec, receipt

LINE = {"queue_1": ["configs/a.yaml recon 3"]}


def write_receipt(run: RunOnDisk, *verdicts: receipt.CellVerdict) -> None:
    made = receipt.RunReceipt("demo", timestamp.utc_now(), verdicts)
    run.project.results.root.mkdir(parents=True)
    atomic.write_whole(run.project.results.receipt, codec.to_document(made))


def test_a_queue_that_began_below_its_last_line_is_launched_from_the_top(tmp_path: Path) -> None:
    """A bare launch would begin there again, and end at once."""
    run = make_run(tmp_path, LINE)
    begun = {"pid": 7, "release": RELEASE, "start_index": 9}
    run.say("queue_1", ("agent.started", begun), queue_done())
    assert str(next_step(run.look(), run.site).command) == "invoke launch --start-index 0"


def test_a_line_that_no_box_can_run_is_not_launched_again(tmp_path: Path) -> None:
    run = make_run(tmp_path, LINE)
    run.say("queue_1", agent_started(), ("queue.done", {"verified": 0, "failed": 0}))
    assert str(next_step(run.look(), run.site).command) == "invoke launch"
    unfit = {"verified": 0, "failed": 0, "unfit": ["a"]}
    run.say("queue_1", agent_started(), ("queue.done", unfit), ("agent.stopped", {}))
    step = next_step(run.look(), run.site)
    assert step.command is None
    assert str(step.because).startswith("a needs more GPUs than any box of this run has")


def test_verify_after_down_does_not_lead_to_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_finished_run(tmp_path, ("a",))
    run.copy_here()
    verify(run.project)
    assert "invoke down" in capsys.readouterr().err
    digest = receipt.read_run(run.project.results.receipt).digest
    assert down(run.project, approve=digest) == 0
    capsys.readouterr()
    assert verify(run.project) == 0
    said = capsys.readouterr().err
    assert "invoke down" not in said and "next: the run was torn down" in said


def test_what_a_run_needs_before_its_launch_is_the_same_for_every_verb(tmp_path: Path) -> None:
    run = make_run(tmp_path, LINE)
    assert str(before_launch(run.project, needs_audit=True)) == "invoke audit"
    host = Home(run.project.root).host("box-a")
    host.parent.mkdir(parents=True)
    host.write_text("{}")
    assert str(before_launch(run.project, needs_audit=True)) == "invoke launch"


def test_status_and_plan_both_ask_for_a_smoke_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, LINE)
    run.project.job.smoke = SimpleNamespace(is_given=True)
    monkeypatch.setattr("boxcar.laptop.tryout.passes.missing", lambda project: ["a"])
    assert str(before_launch(run.project, needs_audit=False)) == "invoke smoke"
    assert str(next_step(run.look(), run.site).command) == "invoke smoke"
    run.say("queue_1", agent_started(), queue_done())
    assert str(next_step(run.look(), run.site).command) == "invoke launch"


def test_down_of_a_run_that_was_verified_and_never_launched_does_not_give_up_its_tier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_finished_run(tmp_path)
    shutil.rmtree(run.root / ".boxcar")
    verify(run.project)
    capsys.readouterr()
    assert down(run.project, approve="0" * 64) == 1
    said = capsys.readouterr().err
    assert "the run: never launched" in said and "--gone" not in said


def test_what_was_given_up_is_said_to_be_and_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, {"queue_1": [*LINE["queue_1"], "configs/b.yaml recon 3"]})
    run.say("queue_1", agent_started(), cell_failed("a"), cell_failed("b"), queue_done())
    assert status(run.project) == 1
    verdicts = [receipt.CellVerdict(c, "queue_1", because="it diverged") for c in "ab"]
    write_receipt(run, *verdicts)
    capsys.readouterr()
    assert status(run.project) == 0
    said = capsys.readouterr()
    assert said.out.count("abandoned") == 2 and "it diverged" in said.out
    assert " failed " not in said.out and "explain" not in said.err
    pull(run.project)
    said = capsys.readouterr()
    assert "not published" not in said.err
    show.begin()
    status(run.project, as_json=True)
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [(c["state"], c["abandoned"]) for c in cells] == [("failed", "it diverged")] * 2


def test_a_cell_that_was_given_up_and_runs_again_runs(tmp_path: Path) -> None:
    run = make_run(tmp_path, LINE)
    run.say("queue_1", agent_started(), cell_failed("a"), queue_done())
    write_receipt(run, receipt.CellVerdict("a", "queue_1", because="it diverged"))
    assert [cell.word for cell in run.look().cells] == ["abandoned"]
    run.say("queue_1", agent_started(), cell_verified("a"))
    assert [cell.word for cell in run.look().cells] == ["verified"]


def test_an_audit_of_a_run_at_work_says_what_status_says(tmp_path: Path) -> None:
    run = make_run(tmp_path, LINE)
    assert str(audit._then(run.site, run.look())) == "invoke launch"
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")):
        assert str(audit._then(run.site, run.look())) == "invoke watch"


def test_pull_of_what_is_proven_already_leads_to_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_finished_run(tmp_path, ("a",))
    run.copy_here()
    verify(run.project)
    capsys.readouterr()
    assert pull(run.project) == 0
    assert capsys.readouterr().err.endswith("Next: invoke down\n")
