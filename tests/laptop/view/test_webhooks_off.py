from __future__ import annotations

from dataclasses import replace

from run_on_disk import RELEASE, from_now

from boxcar.laptop.common import yaml_models
from boxcar.laptop.project.job import Job
from boxcar.laptop.run.view import Condition, QueueView, RunView
from boxcar.laptop.view.needs import webhooks_off
from boxcar.shared.files.heartbeat import Heartbeat

JOB = """\
name: digits
command: train.py --out {out}
queues: {queues/q.txt: box-a}
artifacts: [best.pth]
"""
NOTIFY = 'notify: [{webhook: {url: "env:HOOK", secret: "env:SECRET"}}]\n'


def job(text: str = NOTIFY) -> Job:
    return yaml_models.parse(f"{JOB}{text}".encode(), "job.yaml", Job)


def view(condition: str, **extra: object) -> RunView:
    beat = Heartbeat("q", "box-a", RELEASE, from_now(0), 7, "running", extra=dict(extra))
    is_alive = condition == "running"
    queue = QueueView("q", "box-a", is_alive=is_alive, heartbeat=beat)
    return RunView("r", from_now(0), (replace(queue, condition=Condition(condition, "")),), ())


def test_it_is_told_where_the_url_is_not_set_and_nobody_sends() -> None:
    assert "off (HOOK not set)" in str(webhooks_off(job(), view("not started"), {}))
    assert "off (HOOK not set)" in str(webhooks_off(job(), view("running"), {}))
    said = webhooks_off(job(), view("running"), {"HOOK": "http://a"})
    assert "no URL was set at launch" in str(said)


def test_nothing_is_told_where_they_are_sent_or_nobody_asked_or_all_is_over() -> None:
    assert webhooks_off(job(), view("running", webhooks={"ab": {"seq": 3}}), {}) is None
    assert webhooks_off(job(), view("not started"), {"HOOK": "http://a"}) is None
    assert webhooks_off(job(""), view("running"), {}) is None
    assert webhooks_off(job(), view("done"), {}) is None
