"""A launch that is killed behind any of its questions: the same command goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from apart import apart
from tiny_project import TinyProject, make_project

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.launch import launch
from boxcar.shared.wire import box_asks, run_asks

# What is asked of the box of one queue, where each part of a question counts as one.
PARTS = (
    box_asks.SeeOthers,
    run_asks.FindRelease,
    run_asks.Prepare,
    run_asks.Install,
    run_asks.PointTo,
    run_asks.Append,
    box_asks.KeepCredentials,
    run_asks.WriteControl,
    run_asks.Start,
)
SECRET = {"MY_KEY": "s3cret-value"}


def launched(tiny: TinyProject) -> int:
    return launch(open_project(tiny.root / "job.yaml", "local"), environ=SECRET)


def kill_behind(tiny: TinyProject, last: type, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A launch in a process of its own, which is no more once that was answered; what was asked."""
    asked, ask = tiny.root.parent / "asked.txt", LocalSite.ask

    def answered(self: LocalSite, box: str, question: Any, **more: Any) -> Any:
        answer = ask(self, box, question, **more)
        with asked.open("a") as file:
            file.write(f"{question.NAME}\n")
        if isinstance(question, last):
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    if (pid := os.fork()) == 0:
        try:
            with monkeypatch.context() as patch:
                patch.setattr(LocalSite, "ask", apart(answered))
                launched(tiny)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    return asked.read_text().split()


def test_what_is_asked_one_after_the_other_goes_in_two_round_trips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]}, secrets=["MY_KEY"])
    asked, ask = [], LocalSite.ask

    def note(self: LocalSite, box: str, question: Any, **more: Any) -> Any:
        parts = (
            question.parts if isinstance(question, box_asks.Several) else ({"ask": question.NAME},)
        )
        asked.append([part["ask"] for part in parts])
        return ask(self, box, question, **more)

    monkeypatch.setattr(LocalSite, "ask", note)
    assert launched(tiny) == 0
    names = [part.NAME for part in PARTS]
    assert asked[:3] == [names[:1], names[1:3], names[3:]]
    tiny.wait_for_agents()


@pytest.mark.parametrize("last", PARTS, ids=lambda part: part.NAME)
def test_the_same_command_goes_on_where_a_killed_launch_stopped(
    last: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]}, secrets=["MY_KEY"])
    asked = kill_behind(tiny, last, monkeypatch)
    assert asked == [part.NAME for part in PARTS[: PARTS.index(last) + 1]]
    assert launched(tiny) == 0
    tiny.wait_for_agents()
    assert tiny.types("q1", "a").count("cell.verified") == 1
    project = open_project(tiny.root / "job.yaml", "local")
    assert project.on_tier.queue("q1").read_bytes() == project.queue_files["q1"].read_bytes()
    assert len(list(project.on_tier.releases.iterdir())) == 1, "something unfinished was left"
    kept = [path.read_bytes() for path in project.on_tier.root.rglob("*") if path.is_file()]
    assert not any(SECRET["MY_KEY"].encode() in data for data in kept)
