"""What is told of money is told once, and again only where nobody took it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_on_disk import RunOnDisk, make_run

from boxcar.laptop.common.home import Home
from boxcar.laptop.news import once
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.from_environment import Target
from boxcar.shared.channels.answer import WEBHOOK, Endpoint
from boxcar.shared.wire.news_asks import LATER, TAKEN, Posted

CHAT = Endpoint("slack", "https://hooks.slack.com/services/x")
NEWS = {"budget CNY 1 0.5": "budget: half", "open box-a": "box-a may still bill"}


class Chats:
    """In place of the services, which `posting` is tried against elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: list[tuple[list[str], str]] = []
        self.verdict = TAKEN
        monkeypatch.setattr(once.posting, "post", self.post)
        monkeypatch.setattr(once, "targets", lambda job, environ, place: self.targets[place])
        hook = Endpoint(WEBHOOK, "https://example.org/hook")
        self.targets = {
            "laptop": [Target("slack", "slack", (), CHAT)],
            "box": [Target("webhook", WEBHOOK, (), hook), Target("bark", "bark", (), None, "X")],
        }

    def post(self, _project: Any, to: list[Endpoint], text: str, _environ: Any) -> list[Posted]:
        self.said.append(([one.channel for one in to], text))
        return [Posted(self.verdict, "ok") for _ in to]


@pytest.fixture
def chats(monkeypatch: pytest.MonkeyPatch) -> Chats:
    return Chats(monkeypatch)


@pytest.fixture
def site(tmp_path: Path) -> LocalSite:
    run: RunOnDisk = make_run(tmp_path)
    job = SimpleNamespace(**vars(run.project.job) | {"notify": ("slack",), "language": "en"})
    return LocalSite(replace(run.project, job=job), lambda _text: None)


def test_each_piece_of_news_is_sent_once_to_chats_alone(chats: Chats, site: LocalSite) -> None:
    once.tell_once(site, NEWS, {})
    once.tell_once(site, NEWS, {})
    assert chats.said == [(["slack"], "demo\nbudget: half\nbox-a may still bill")]
    once.tell_once(site, NEWS | {"budget CNY 1 0.8": "budget: more"}, {})
    assert chats.said[1:] == [(["slack"], "demo\nbudget: more")]


def test_what_nobody_took_is_tried_again_after_a_while(chats: Chats, site: LocalSite) -> None:
    chats.verdict = LATER
    once.tell_once(site, NEWS, {})
    once.tell_once(site, NEWS, {})
    assert len(chats.said) == 1, "not at each look"
    path = Home(site.project.root).told("demo", "MONEY")
    kept = json.loads(path.read_bytes())
    assert kept["told"] == {}
    path.write_text(json.dumps(kept | {"tried_at": "2026-01-01T00:00:00.000Z"}))
    chats.verdict = TAKEN
    once.tell_once(site, NEWS, {})
    assert len(chats.said) == 2 and {*json.loads(path.read_bytes())["told"]} == {*NEWS}


def test_a_damaged_record_or_no_notify_ends_no_verb(chats: Chats, site: LocalSite) -> None:
    path = Home(site.project.root).told("demo", "MONEY")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    once.tell_once(site, NEWS, {})
    site.project.job.notify = ()
    path.unlink()
    once.tell_once(site, NEWS, {})
    assert chats.said == []
