"""The value of a secret that a script repeats in its words leaves the box in the script's own files
alone: no chat, no record and no verb says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from robot import YES, Robot
from tiny_project import MakeProject, TinyProject

VALUE = "tok3n/CANARY+0987 of=me"
NAMES = {"HUB_TOKEN": VALUE}
WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

# `does` says what the cell tells of its secret, and where.
TRAIN = """
import json, os, sys, time
from pathlib import Path
from urllib.parse import quote

config, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
token = os.environ["HUB_TOKEN"]
progress = {"step": 1, token: 0.5, "note": f"by {token}"}
(out / "progress.jsonl").write_text(json.dumps(progress) + "\\n")
time.sleep(config["seconds"])
print("score", f"{token}", flush=True)
match config["does"]:
    case "error":
        raise ValueError(f"no access to the data set with {token}")
    case "url":
        at = f"me:{quote(token, safe='')}@git.example/a?t={quote(token)}"
        raise ValueError(f"refused by https://{at}")
    case "traceback":
        {}["of " + repr(token)]
    case "cut":
        raise ValueError("x" * (int(config["at"]) - 12) + token)
(out / "model.json").write_text(json.dumps({"weights": 1}))
(out / "metrics.json").write_text(json.dumps({"score": 1.5, token: 2.5, "deep": {token: 1}}))
"""


@pytest.fixture
def robot() -> Iterator[Robot]:
    chat = Robot(last=(200, {}, YES["ntfy"]))
    yield chat
    chat.end()


def ends(project: MakeProject, robot: Robot, **cells: dict[str, object]) -> TinyProject:
    """Each cell has come to its end, and what is to be told of it is told."""
    run = project(
        {"q1": [f"configs/{name}.json one" for name in cells]},
        command="train.py {cfg} {out}",
        secrets=["HUB_TOKEN"],
        epochs=None,
        resume=None,
        metrics={"found": {"log": "score (.*)"}},
        notify=[
            {"webhook": {"url": "env:HOOK", "secret": "env:HOOK_SECRET"}},
            {"ntfy": {"url": "env:CHAT"}},
        ],
    )
    (run.root / "train.py").write_text(TRAIN)
    for name, config in cells.items():
        run.write_config(name, **({"seconds": 0, "does": ""} | config))
    at = f"http://127.0.0.1:{robot.server_address[1]}"
    env = {"HOOK": f"{at}/hook", "HOOK_SECRET": WEBHOOK_SECRET, "CHAT": f"{at}/topic-of-mine"}
    # 1 where a cell has failed before the launch has looked.
    assert run.boxcar("launch", env=NAMES | env).code in (0, 1)
    run.wait_for_agents()
    return run


def tells(text: str) -> list[str]:
    """The forms in which the value stands there."""
    forms = (VALUE, quote(VALUE), quote(VALUE, safe=""), json.dumps(VALUE)[1:-1], VALUE[:12])
    return [form for form in forms if form in text]


def of_records(run: TinyProject) -> dict[str, str]:
    """What the box and this machine have written, but for logs, artifacts and the credentials."""
    theirs = ("model.json", "metrics.json", "progress.jsonl", "credentials-tiny.json")
    return {
        str(path): path.read_text(errors="replace")
        for folder in (run.tier, run.results)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".log" and path.name not in theirs
    }


def test_no_record_no_chat_and_no_verb_repeats_a_secret(project, robot):
    cut = {
        f"{what}{at}": {"does": what, "at": at}
        for at in (160, 300, 400)
        for what in ("cut", "good")  # two that fail alike in a row would end the queue
    }
    run = ends(
        project,
        robot,
        error={"does": "error"},
        url={"does": "url"},
        traceback={"does": "traceback"},
        good={},
        **cut,
    )
    assert {"cell.failed", "cell.verified"} <= set(run.types("q1"))
    said = {
        f"sent to {path}": str(body) for path, body in zip(robot.paths, robot.bodies, strict=True)
    }
    said |= {f"body {at}": json.dumps(body) for at, body in enumerate(robot.bodies)}
    assert any("error" in body for body in said.values())
    page = run.root / "board.html"
    verbs = [
        *(("status",), ("status", "--json"), ("board", "--to", str(page), "--logs"), ("pull",)),
        *(
            ("verify",),
            ("verify", "--json"),
            ("report",),
            ("report", "--json"),
            ("watch", "--json"),
        ),
        *(("explain", "--cell", cell) for cell in ("error", "url", "traceback", "good")),
        *(("explain", "--cell", cell, "--json") for cell in ("error", "url", "cut400", "good")),
    ]
    for words in verbs:
        told = run.boxcar(*words, env=NAMES)
        said[" ".join(words)] = told.out + told.err
    said |= of_records(run) | {"page": page.read_text(), "agent": run.agent_log("q1")}
    assert {where: tells(text) for where, text in said.items() if tells(text)} == {}


def test_a_log_is_the_persons_own_and_is_shown_as_it_is(project, robot):
    run = ends(project, robot, error={"does": "error"})
    assert VALUE in run.boxcar("logs", "--cell", "error").out


def test_a_report_of_progress_names_no_secret_while_the_cell_runs(project, robot):
    run = project({"q1": ["configs/a.json one"]}, command="train.py {cfg} {out}",
                  secrets=["HUB_TOKEN"], epochs=None, resume=None)  # fmt: skip
    (run.root / "train.py").write_text(TRAIN)
    run.write_config("a", seconds=600, does="")
    run.boxcar("launch", env=NAMES).ended(0)
    beat = run.tier / "heartbeat" / "q1.json"
    run.wait_for("its progress", lambda: beat.exists() and json.loads(beat.read_text())["progress"])
    assert tells(beat.read_text()) == []
    assert json.loads(beat.read_text())["progress"]["step"] == 1
    run.boxcar("stop").ended(0)
