from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from waiting import LIMIT_S

from boxcar.shared.files import delivered
from onbox.answers import door

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def ask(run: Any, **words: Any) -> dict[str, Any]:
    places = {"durable_dir": run.plan.durable_dir, "data_dir": run.plan.box("box-a").data_dir}
    what = {"queue": "q1", "digest": run.release.name, "credentials": f"{run.root}/none.json"}
    request = {"ask": "deliver", "run": "tiny", **places, **what, **words}
    return door.answer(json.dumps(request).encode())


def test_what_nobody_wants_is_not_left(make_run: Any) -> None:
    run = make_run({"a": {}})
    assert run.finish() == 0
    assert ask(run) == {"left": 0}


def test_an_endpoint_that_is_away_leaves_its_events(make_run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("onbox.answers.deliver_late.DELIVER_S", 0.2)
    run = make_run({"a": {}})
    assert run.finish() == 0
    path = Path(run.plan.box("box-a").credentials)
    webhook = {"url": "http://127.0.0.1:9/x", "secret": SECRET}
    path.write_text(json.dumps({"env": {}, "webhooks": [webhook]}))
    path.chmod(0o600)
    told = ask(run, credentials=str(path))
    assert told["left"] > 0
    found = delivered.read_delivered(run.durable.delivered("q1"))
    assert all(cursor.seq == 0 for cursor in found.endpoints.values())


def test_an_agent_that_runs_delivers_by_itself(make_run: Any) -> None:
    run = make_run({"a": {"gate": 1}})
    agent = run.start()
    run.wait_for_step("a")
    assert ask(run)["error"]["kind"] == "TemporaryError"
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0


def test_a_queue_that_the_release_has_not_is_refused(make_run: Any) -> None:
    assert ask(make_run({"a": {}}), queue="q9")["error"]["kind"] == "InputError"
