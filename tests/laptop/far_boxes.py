"""Boxes that are reached by questions only: what they answer is real, and there is no ssh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from run_on_disk import LINES, RunOnDisk, from_now, make_run

from boxcar.laptop.common import show
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts.connection import Ran
from boxcar.laptop.hosts.ssh_errors import Unreachable
from boxcar.laptop.places import mirrored_site
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import archives
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import Condition, RunView
from boxcar.shared import timestamp
from boxcar.shared.wire import envelope
from boxcar.shared.wire.question import A, Question, RunOnBox
from onbox.answers.door import answer as onbox_answer
from onbox.machine import process


@dataclass
class World:
    """What lies between the laptop and its boxes. `tiers` is where a box has its durable tier.

    `cut` are boxes of which nothing comes back; `off` those whose address turns us away.
    """

    cut: set[str] = field(default_factory=set)
    off: set[str] = field(default_factory=set)
    tiers: dict[str, Path] = field(default_factory=dict)
    clock_ahead_s: dict[str, float] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    ran: list[tuple[str, list[str]]] = field(default_factory=list)
    change: Callable[[str, dict[str, Any]], None] = lambda box, told: None
    on_run: Callable[[str, list[str]], Ran | None] = lambda box, words: None

    def times(self, box: str) -> int:
        """How often the box was asked anything."""
        return sum(name == box for name, _ in self.asked)

    def check(self, box: str) -> None:
        if box in self.cut:
            raise Unreachable(box, "the connection timed out")
        if box in self.off:
            raise Unreachable(box, "connection refused", is_brief=True)


@dataclass
class FarSsh:
    alias: str
    home: Home
    world: World

    def run(self, words: Sequence[str], data: bytes = b"", **more: Any) -> Ran:
        self.world.check(self.alias)
        self.world.ran.append((self.alias, list(words)))
        return self.world.on_run(self.alias, list(words)) or Ran(0, b"", "")

    def close(self) -> None:
        self.world.ran.append((self.alias, ["closed"]))


@dataclass
class FarHand:
    ssh: FarSsh

    def run(
        self, words: Sequence[str], *, tries: int, on_start: Callable[[], None] = lambda: None
    ) -> Ran:
        self.ssh.world.check(self.ssh.alias)
        on_start()
        return self.ssh.run(words)

    def ask(self, question: Question[A], run: RunOnBox, *, timeout_s: float, tries: int = 4) -> A:
        box, world = self.ssh.alias, self.ssh.world
        world.asked.append((box, question.NAME))
        world.check(box)
        if box in world.tiers:
            run = replace(run, durable_dir=str(world.tiers[box]))
        told = onbox_answer(envelope.write_question(question, run))
        if ahead_s := world.clock_ahead_s.get(box):
            at = timestamp.parse_utc(told["at"]) + timedelta(seconds=ahead_s)
            told["at"] = timestamp.utc(at)
        world.change(box, told)
        return envelope.read_answer(question, box, 0, envelope.write_answer(told), "")


@dataclass
class FarRun:
    """A run on disk that the laptop sees only by asking its boxes. `agents` writes what they do."""

    agents: RunOnDisk
    world: World
    project: Project
    site: SshSite

    def look(self, in_s: float = 0.0) -> RunView:
        self.site.refresh()
        return look_at_run(self.site, from_now(in_s))

    def condition(self, queue: str, in_s: float = 0.0) -> Condition:
        view = self.look(in_s)
        return view.queue(queue).condition


def seen_from_afar(project: Project, monkeypatch: pytest.MonkeyPatch) -> tuple[Project, World]:
    """The project on the same boxes, as it is where nothing but questions reaches them."""
    world = World()
    monkeypatch.setattr(mirrored_site, "Ssh", lambda alias, home, tell: FarSsh(alias, home, world))
    monkeypatch.setattr(mirrored_site, "Hand", lambda ssh, *words: FarHand(ssh))
    # All boxes are this machine, on which others may train.
    monkeypatch.setattr(process, "carrying", lambda name: {})
    monkeypatch.setattr(archives, "build_onbox", lambda: b"")
    return replace(project, profile=load_profile("ssh", project.root)), world


def make_far_run(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    lines: Mapping[str, Sequence[str]] = LINES,
    scope: str = "shared",
) -> FarRun:
    """A box for each queue of `lines`; `scope` is that of the durable tier."""
    agents = make_run(root, lines)
    plan = replace(agents.project.plan, durable_scope=scope)
    near = replace(agents.project, root=root / "laptop", plan=plan)
    project, world = seen_from_afar(near, monkeypatch)
    return FarRun(agents, world, project, SshSite(project, show.say))


@contextmanager
def a_clock_of_our_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The one number of the list is the time that the back-off reads."""
    now = [1000.0]
    with monkeypatch.context() as patch:
        patch.setattr(mirrored_site.time, "monotonic", lambda: now[0])
        yield now
