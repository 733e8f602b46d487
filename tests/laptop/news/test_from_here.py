"""What this machine sends at a look, by real robots and a mail server on 127.0.0.1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun, make_run
from robot import NO, TOKEN, YES, Robot
from smtp_server import MailServer

from boxcar.laptop.common.home import Home
from boxcar.laptop.news import from_here
from boxcar.laptop.project.job import read_job
from boxcar.laptop.run.look import look_at_run
from boxcar.shared.disk import lock
from boxcar.shared.files import delivered
from boxcar.shared.files.journal import Journal
from boxcar.shared.news import wanted

JOB = "name: tiny\ncommand: t.py\nartifacts: [m]\nqueues: {q1.txt: box-a}\nlanguage: en\nnotify:\n"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.end()


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    found = make_run(tmp_path)
    for folder in found.site.tier.folders():
        folder.mkdir(parents=True, exist_ok=True)
    for queue in ("q1", "q2"):
        found.site.tier.journal(queue).unlink(missing_ok=True)
    return found


def of_job(run: FinishedRun, *lines: str) -> Any:
    path = run.root / "notify.yaml"
    path.write_text(JOB + "".join(f"  - {line}\n" for line in lines))
    run.project = replace(run.project, job=read_job(path))
    return run.site


def of_mail(server: MailServer) -> str:
    return f"email: {{to: you@b.c, host: 127.0.0.1, port: {server.port}, security: none}}"


def journal(run: FinishedRun) -> Journal:
    about = {"run": "tiny", "queue": "q1", "box": "box-a"}
    return Journal(run.site.tier.journal("q1"), about)


def fail(run: FinishedRun, cell: str) -> None:
    about = {"attempt": 1, "failure": "M2", "reason": "no memory", "release": "d" * 64}
    journal(run).append("cell.failed", cell=cell, **about, is_final=True)


def at_a_look(site: Any, environ: dict[str, str] | None = None) -> list[str]:
    view = look_at_run(site, "2026-11-22T22:41:07.123Z")
    return from_here.send_news(site, view, environ or dict(os.environ))


def begun(site: Any, environ: dict[str, str] | None = None) -> None:
    view = look_at_run(site, "2026-11-22T22:41:07.123Z")
    from_here.begin_news(site, view, environ or dict(os.environ))


def test_what_happened_since_the_launch_is_one_mail_at_the_next_look(
    run: FinishedRun, mail: MailServer
) -> None:
    site = of_job(run, of_mail(mail))
    fail(run, "old")
    begun(site)
    fail(run, "a")
    fail(run, "b")
    assert at_a_look(site) == []
    [(_, to, content)] = mail.mails
    assert to == "you@b.c"
    assert "2 events" in content
    assert "old" not in content
    assert at_a_look(site) == []
    assert len(mail.mails) == 1


def test_a_mail_that_was_not_taken_is_sent_again_and_a_no_is_said(
    run: FinishedRun, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_here, "_RATE", ((1, 0.0),))
    site = of_job(run, of_mail(mail))
    begun(site)
    fail(run, "a")
    mail.after_data = "554 5.7.1 spam"
    assert at_a_look(site) == ["q1: email rejects its notifications: 554 5.7.1 spam"]
    mail.after_data = "250 ok"
    assert at_a_look(site) == []
    assert "a failed" in mail.mails[0][2]


def test_what_is_refused_for_ever_is_set_aside_and_does_not_hold_up_the_next(
    run: FinishedRun, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_here, "_RATE", ((1, 0.0),))
    monkeypatch.setattr(wanted, "REFUSALS", 3)
    site = of_job(run, of_mail(mail))
    begun(site)
    fail(run, "bad")
    mail.after_data = "554 5.7.1 spam"
    for _ in range(2):
        at_a_look(site)
    fail(run, "good")
    [told, *_] = at_a_look(site)
    assert told.startswith(
        "q1: 1 notification was not delivered and will not be retried: email rejected"
    )
    assert told.endswith("554 5.7.1 spam")
    mail.after_data = "250 ok"
    at_a_look(site)
    assert len(mail.mails) == 1
    assert "good failed" in mail.mails[0][2] and "bad" not in mail.mails[0][2]
    assert not [line for line in at_a_look(site) if "refuses" in line]


def test_what_could_not_be_sent_is_said_at_each_look_until_it_is(
    run: FinishedRun, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_here, "_RATE", ((1, 0.0),))
    site = of_job(run, of_mail(mail))
    begun(site)
    fail(run, "a")
    mail.after_data = "451 4.7.1 later"
    [told] = at_a_look(site)
    assert told.startswith(
        "q1: 1 notification was not delivered to email from here (451 4.7.1 later)"
    )
    mail.after_data = "250 ok"
    assert at_a_look(site) == []


def test_its_rate_is_kept_over_looks(run: FinishedRun, mail: MailServer) -> None:
    site = of_job(run, of_mail(mail))
    begun(site)
    for cell in "abc":
        fail(run, cell)
        at_a_look(site)
    assert len(mail.mails) == 1


def test_a_chat_that_this_machine_sends_to_is_judged_by_the_services_answer(
    run: FinishedRun, robot: Robot
) -> None:
    site = of_job(run, 'telegram: {token: "env:T", chat: "env:C", url: "env:U", from: laptop}')
    environ = {"T": TOKEN, "C": "4711", "U": robot.chat().url, "PATH": os.environ["PATH"]}
    begun(site, environ)
    fail(run, "a")
    robot.last = (400, {}, NO)
    [told] = at_a_look(site, environ)
    assert "telegram rejects its notifications: answered 400" in told
    assert TOKEN not in told
    path = Home(run.project.root).told("tiny", "q1")
    assert TOKEN not in path.read_text()
    [cursor] = delivered.read_delivered(path).endpoints.values()
    assert cursor.seq == 0


def test_two_looks_at_once_send_nothing_twice(run: FinishedRun, mail: MailServer) -> None:
    site = of_job(run, of_mail(mail))
    begun(site)
    fail(run, "a")
    held = lock.try_hold(Home(run.project.root).told("tiny", "q1").with_suffix(".lock"))
    assert held is not None
    assert at_a_look(site) == []
    os.close(held)
    assert mail.mails == []
    at_a_look(site)
    assert len(mail.mails) == 1


def test_a_job_whose_news_the_boxes_send_leaves_nothing_here(
    run: FinishedRun, robot: Robot
) -> None:
    site = of_job(run, 'feishu: {url: "env:U"}')
    robot.last = (200, {}, YES["feishu"])
    fail(run, "a")
    assert at_a_look(site, {"U": robot.chat().url}) == []
    assert not Home(run.project.root).told("tiny", "q1").parent.exists()
    assert robot.bodies == []
