"""The whole life of a run, as a person types it: the exit code and words of each verb."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from living import kill_all
from proof import assert_nothing_runs, assert_nothing_torn, assert_published_once, assert_pulled
from tiny_project import BOXCAR, MakeProject, Said, TinyProject, environment, make_project
from waiting import LIMIT_S

from boxcar.door.verb_table import VERBS

CHECKOUT = Path(__file__).parents[2]
CELLS = ["a", "b", "c"]


class Life:
    """One run from plan to teardown: what each verb said, in the order in which it was typed."""

    def __init__(self, root: Path) -> None:
        queues = {
            "q1": ["configs/a.json one 12", "configs/b.json two"],
            "q2": ["configs/c.json 'a b'"],
        }
        self.project = make_project(root, queues)
        self.project.hold("a", at=3, x=3)
        self.said: dict[str, Said] = {}

    def type(self, step: str, *words: str, typed: str | None = None) -> Said:
        self.said[step] = self.project.boxcar(*words, typed=typed)
        return self.said[step]

    def live(self) -> None:
        project = self.project
        self.type("plan", "plan", "--json")
        self.was_planned_only = not (project.root / ".boxcar").exists()
        self.type("pull too early", "pull")
        self.type("launch", "launch", "--json")
        self.type("launch again", "launch", "--json")
        self.type("status", "status", "--json")
        project.let_go("a")
        self.type("watch", "watch", "--json")
        self.type("logs", "logs", "--cell", "b")
        self.type("explain", "explain", "--cell", "b", "--json")
        self.type("pull", "pull", "--json")
        self.pulled = _bytes_below(project.results / "cells")
        self.type("pull again", "pull", "--json")
        self.type("down too early", "down")
        self.type("verify", "verify", "--json")
        assert_published_once(project, CELLS)
        assert_pulled(project, CELLS)
        assert_nothing_torn(project)
        self.before_down = _bytes_below(project.root)
        self.type("down unapproved", "down", "--json")
        self.type("down for another state", "down", "--approve", "0" * 64)
        self.type("down mistyped", "down", typed="tiny-2")
        self.after_refusals = _bytes_below(project.root)
        self.type("down", "down", "--json", typed="tiny")
        self.type("down again", "down", "--json")
        self.type("status after", "status", "--json")
        self.type("launch after", "launch")


@pytest.fixture(scope="module")
def life(
    tmp_path_factory: pytest.TempPathFactory, announce: Callable[[str], None]
) -> Iterator[Life]:
    announce("a run on two local boxes, from plan to teardown; half a minute")
    lived = Life(tmp_path_factory.mktemp("life") / "project")
    lived.live()
    yield lived
    kill_all(lived.project.root)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("plan", 0),
        ("pull too early", 2),
        ("launch", 0),
        ("launch again", 0),
        ("status", 0),
        ("watch", 0),
        ("logs", 0),
        ("explain", 0),
        ("pull", 0),
        ("pull again", 0),
        ("down too early", 1),
        ("verify", 0),
        ("down unapproved", 1),
        ("down for another state", 1),
        ("down mistyped", 1),
        ("down", 0),
        ("down again", 0),
        ("status after", 0),
        ("launch after", 2),
    ],
)
def test_each_verb_ends_with_its_exit_code(life: Life, step: str, code: int) -> None:
    life.said[step].ended(code)


def test_json_is_one_document_and_nothing_else_is_on_stdout(life: Life) -> None:
    spoken = [said for said in life.said.values() if "--json" in said.words]
    assert len({said.words.split()[1] for said in spoken}) == 8
    for said in spoken:
        assert said.document["run" if "explain" not in said.words else "cell"]


def test_plan_shows_the_cells_and_writes_nothing(life: Life) -> None:
    planned = life.said["plan"].document
    assert [cell["cell"] for cell in planned["cells"]] == CELLS
    assert [cell["epochs"] for cell in planned["cells"]] == [12, 2, 2]
    assert life.was_planned_only


def test_launching_again_leaves_the_agents_alone(life: Life) -> None:
    first, again = (life.said[step].document for step in ("launch", "launch again"))
    assert (first["started"], first["problems"]) == (["q1", "q2"], [])
    # The short queue may have come to its end by then, and is then gone on with.
    assert "q1" not in again["started"] and again["release"] == first["release"]
    assert "q1: its agent is already running" in life.said["launch again"].err


def test_status_shows_what_runs_and_watch_the_end(life: Life) -> None:
    before, after = (life.said[step].document for step in ("status", "watch"))
    assert {cell["cell"]: cell["state"] for cell in before["cells"]}["a"] == "running"
    assert [cell["state"] for cell in after["cells"]] == ["verified"] * 3
    # `steps` of model.json is no result by its name.
    assert after["cells"][0]["metrics"] == {"score": 12.5, "x": 3}
    assert [queue["condition"] for queue in after["queues"]] == ["done", "done"]
    assert after["next"]["command"] == "boxcar pull"


def test_logs_and_explain_speak_of_the_cell(life: Life) -> None:
    assert "trained configs/b.json two" in life.said["logs"].out
    explained = life.said["explain"].document
    assert (explained["cell"], explained["state"]) == ("b", "verified")


def test_pulling_again_changes_nothing(life: Life) -> None:
    first, again = (life.said[step].document["cells"] for step in ("pull", "pull again"))
    assert [(cell["cell"], cell["state"]) for cell in first] == [(name, "pulled") for name in CELLS]
    assert [(cell["cell"], cell["state"]) for cell in again] == [(name, "here") for name in CELLS]
    assert {
        path: life.before_down[f"results/tiny/cells/{path}"] for path in life.pulled
    } == life.pulled


def test_down_says_what_is_missing_and_the_command_that_mends_it(life: Life) -> None:
    assert "there is no receipt yet: boxcar verify" in life.said["down too early"].err
    digest = life.said["verify"].document["digest"]
    told = life.said["down unapproved"]
    assert f"not approved yet: boxcar down --approve {digest[:12]}" in told.err
    assert told.document["is_down"] is False
    assert "approves other results" in life.said["down for another state"].err
    assert "expected the run's name 'tiny', found 'tiny-2'" in life.said["down mistyped"].err


def test_a_refused_down_touches_nothing(life: Life) -> None:
    assert life.after_refusals == life.before_down


def test_the_approved_down_removes_the_run_and_keeps_the_results(life: Life) -> None:
    project = life.project
    assert life.said["down"].document["teardown"]["approved_by"] == "typed"
    assert not project.tier.exists() and not project.box("box-a").exists()
    left = _bytes_below(project.root / ".boxcar" / "local")
    assert not left, f"these outlive the teardown: {sorted(left)}"
    assert life.said["down again"].document == life.said["down"].document
    assert_pulled(project, CELLS)
    assert_nothing_runs(project)


def test_after_the_end_nothing_is_left_to_do(life: Life) -> None:
    after = life.said["status after"].document
    assert after["next"]["command"] is None
    assert [cell["state"] for cell in after["cells"]] == ["verified"] * 3
    assert "was torn down" in life.said["launch after"].err


# --- while it runs


def test_a_running_queue_keeps_its_release_and_runs_appended_lines(project: MakeProject) -> None:
    run = project({"q1": ["configs/a.json one"]}, linger_s=60)
    run.hold("a", at=1)
    run.write_config("later", x=5)
    first = run.boxcar("launch", "--json").ended(0).document["release"]
    before = _bytes_below(run.tier / "releases")

    same = run.boxcar("push", "--json").ended(0).document
    assert (same["release"], same["is_new"], same["queues"]) == (first, False, {"q1": "same"})
    assert _bytes_below(run.tier / "releases") == before

    run.write_config("later", x=7)
    run.append("q1", "configs/later.json two 3")
    second = run.boxcar("push", "--json").ended(0).document
    assert second["is_new"] and second["queues"] == {"q1": "appended"}
    assert run.releases == {first, second["release"]}
    assert before.items() <= _bytes_below(run.tier / "releases").items()

    run.let_go("a")
    run.wait_for_event("q1", "cell.verified", "later")
    metrics = json.loads((run.tier / "cells" / "later" / "metrics.json").read_text())
    assert metrics == {"score": 3.5, "task": "two", "x": 5}
    assert _manifest(run, "later")["release"] == first

    # It lingers now; what is appended meanwhile starts at once, wholly on the release that has it.
    run.append("q1", "configs/third.json three")
    run.write_config("third", x=9)
    third = run.boxcar("push", "--json").ended(0).document["release"]
    run.wait_for_event("q1", "cell.verified", "third")
    assert _manifest(run, "third")["release"] == third

    run.boxcar("drain").ended(0)
    run.wait_for_agents()
    assert run.events("q1")[-1]["data"]["reason"] == "asked to drain"
    assert_published_once(run, ["a", "later", "third"])
    assert third not in (first, second["release"])


def test_a_drained_queue_finishes_its_cell_and_starts_no_other(project: MakeProject) -> None:
    run = project({"q1": ["configs/a.json one", "configs/b.json one"]})
    run.hold("a", at=1)
    run.boxcar("launch").ended(0)
    said = run.boxcar("drain", "--queue", "q1").ended(0)
    assert "q1 on box-a: finishes a, then ends" in said.err
    run.let_go("a")
    run.wait_for_agents()
    assert "cell.verified" in run.types("q1", "a")
    assert run.types("q1", "b") == []
    assert "\nq1: nothing is running" in run.boxcar("drain").ended(0).err
    run.boxcar("launch").ended(0)
    assert run.boxcar("watch", "--json").ended(0).document["cells"][1]["state"] == "verified"
    assert_published_once(run, ["a", "b"])


def test_a_stopped_cell_goes_on_from_its_checkpoint(project: MakeProject) -> None:
    run = project({"q1": ["configs/a.json one 6"]})
    run.hold("a", at=4)
    run.boxcar("launch").ended(0)
    run.wait_for_step("box-a", "a", 4)
    run.boxcar("stop").ended(0)
    run.wait_for_agents()
    assert run.types("q1", "a")[-1] == "cell.preempted"
    assert run.boxcar("status", "--json").ended(0).document["queues"][0]["condition"] == "stopped"

    run.boxcar("launch").ended(0)
    run.boxcar("watch").ended(0)
    history = (run.out("box-a", "a") / "history.txt").read_text().splitlines()
    steps = [f"step {n}" for n in range(1, 7)]
    assert history == ["start 0", *steps[:4], "start 4", *steps[4:]]
    assert_published_once(run, ["a"])


def test_a_waiting_cell_goes_to_a_queue_that_is_idle_and_its_own_works_on(
    project: MakeProject,
) -> None:
    run = project(
        {"q1": ["configs/a.json one", "configs/b.json one"], "q2": ["configs/c.json one"]}
    )
    run.hold("a", at=1)
    run.boxcar("launch").ended(0)
    run.wait_for_step("box-a", "a", 1)
    run.boxcar("move", "--cell", "b", "--queue", "q2").ended(0)
    run.boxcar("launch", "--box", "box-b").ended(0)
    run.wait_for_event("q2", "cell.verified", "b")
    assert run.types("q1", "b") == []
    run.let_go("a")
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["a", "b", "c"])


@pytest.mark.parametrize("order", ["stop", "drain"])
def test_a_launch_right_behind_an_order_to_end_has_all_cells_run(
    project: MakeProject, order: str
) -> None:
    run = project({"q1": ["configs/a.json one 6", "configs/b.json one"]})
    run.hold("a", at=4)
    run.boxcar("launch").ended(0)
    run.wait_for_step("box-a", "a", 4)
    run.boxcar(order).ended(0)
    run.boxcar("launch").ended(0)
    run.let_go("a")
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["a", "b"])


def test_a_cell_that_failed_keeps_the_gate_shut_until_it_is_abandoned(project: MakeProject) -> None:
    run = project({"q1": ["configs/good.json one", "configs/bad.json one"]})
    run.write_config("bad", exit_code=42)
    run.boxcar("launch")
    watched = run.boxcar("watch", "--json").ended(1).document
    assert [cell["state"] for cell in watched["cells"]] == ["verified", "failed"]
    assert watched["cells"][1]["detail"]["failure"] == "EXIT42"
    run.boxcar("pull").ended(0)
    assert (
        "bad failed, so it has no result: boxcar explain --cell bad"
        in run.boxcar("verify").ended(1).err
    )
    refused = run.boxcar("down", "--approve", _receipt_digest(run)).ended(1)
    assert "bad failed, so it has no result" in refused.err and run.tier.exists()

    assert "--because" in run.boxcar("down", "--abandon", "bad").ended(2).err
    given_up = ["down", "--json", "--abandon", "bad", "--because", "it never converged"]
    told = run.boxcar(*given_up).ended(1)
    assert "it never converged" in told.err and run.tier.exists()
    digest = told.document["missing"][0]["command"].split()[-1]
    run.boxcar("down", "--approve", digest).ended(0)
    assert not run.tier.exists()
    kept = json.loads((run.results / "receipt.json").read_text())
    assert {cell["cell"]: cell["because"] for cell in kept["cells"]} == {
        "good": None,
        "bad": "it never converged",
    }


# --- webhooks


def test_listen_gets_every_public_event_once_and_in_order(project: MakeProject) -> None:
    webhook = {"url": "env:BOXCAR_WEBHOOK_URL", "secret": "env:BOXCAR_WEBHOOK_SECRET"}
    run = project(
        {"q1": ["configs/a.json one", "configs/b.json two"]}, notify=[{"webhook": webhook}]
    )
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    listening = run.start("listen", "--port", "0", env={"BOXCAR_WEBHOOK_SECRET": secret})
    assert listening.stderr and listening.stdout
    url = listening.stderr.readline().split()[2]
    run.boxcar("launch", env={"BOXCAR_WEBHOOK_URL": url, "BOXCAR_WEBHOOK_SECRET": secret}).ended(0)
    run.boxcar("watch").ended(0)
    listening.send_signal(signal.SIGINT)
    out, err = listening.communicate(timeout=LIMIT_S)
    assert listening.returncode == 130
    assert "0 duplicates" in err

    told = [line.split()[1:3] for line in out.splitlines()]
    private = ("cell.claimed", "cell.succeeded", "cell.preempted")
    said = [event for event in run.events("q1") if event["type"] not in private]
    assert told == [[event["type"], "q1"] for event in said]
    assert not _files_with(run.root, secret, but_not="credentials-tiny.json")


# --- the doors


def test_invoke_lists_every_verb() -> None:
    command = [sys.executable, "-m", "invoke", "--list"]
    said = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^  ([\w-]+)  ", said.stdout, re.M)
    assert sorted(listed) == sorted(VERBS)


def test_invoke_in_the_checkout_takes_a_job_from_elsewhere(project: MakeProject) -> None:
    run = project({"q1": ["configs/a.json one"]})
    command = [
        sys.executable,
        "-m",
        "invoke",
        "plan",
        "--json",
        "--job",
        str(run.root / "job.yaml"),
    ]
    said = subprocess.run(
        command, cwd=CHECKOUT, env=environment(), capture_output=True, text=True, check=True
    )
    assert json.loads(said.stdout)["project"] == str(run.root)


def test_settings_may_stand_in_the_environment(project: MakeProject) -> None:
    run = project({"q1": ["configs/a.json one"]})
    (run.root / "job.yaml").rename(run.root / "other.yaml")
    assert run.boxcar("plan", env={"INVOKE_BOXCAR_JOB": "other.yaml"}).ended(0)


def test_boxcar_prints_a_completion_script() -> None:
    said = subprocess.run(
        [BOXCAR, "--print-completion-script", "bash"], capture_output=True, text=True, check=True
    )
    assert "complete" in said.stdout and "boxcar" in said.stdout


def _bytes_below(folder: Path) -> dict[str, bytes]:
    """Every file below, without locks (which are opened to be asked) and the agents' own clocks."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _manifest(run: TinyProject, cell: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.tier / "cells" / cell / "manifest.json").read_text())
    return found


def _receipt_digest(run: TinyProject) -> str:
    """As a person gets it: from what the gate says."""
    said = run.boxcar("verify", "--json")
    digest: str = said.document["digest"]
    return digest


def _files_with(folder: Path, secret: str, but_not: str) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != but_not)
    return [path for path in found if secret.encode() in path.read_bytes()]
