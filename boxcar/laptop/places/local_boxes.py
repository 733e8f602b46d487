"""The boxes of the local profile: folders on this machine, each with what a rented box would have.

The tier, locks and logs are read directly. What changes something goes through `onbox answer` in a
child with a clean environment, as it would on a rented box.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.hosts.boxes import ASK_TIMEOUT_S
from boxcar.laptop.hosts.scheduled import Scheduled
from boxcar.laptop.project import profile_choice
from boxcar.laptop.project.project import Project
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import lock
from boxcar.shared.environment import clean_environment
from boxcar.shared.errors import InputError
from boxcar.shared.files import progress
from boxcar.shared.paths import DurablePaths
from boxcar.shared.wire.question import A, Question, RunOnBox


class LocalBoxes:
    """See boxes.Boxes."""

    tick_s = 0.25

    def __init__(self, project: Project) -> None:
        self._project = project
        self._gone: set[str] = set()

    @property
    def tier(self) -> DurablePaths:
        return self._project.on_tier

    def label(self, box: str) -> str:
        # Who forgot --profile would read the alias of a rented box.
        return Sentence("good_run.box_here", box=box)

    def refresh(self, *, is_exact: bool = False) -> None:
        pass

    def give_up(self, names: Iterable[str]) -> None:
        for name in names:
            if name != self._project.plan.durable_dir:
                raise InputError(f"--gone {name}: it is a folder on this machine, and can be asked")
            if self.tier.root.exists():
                raise InputError(f"--gone {name}: the run is there, so it is not gone")
            self._gone.add(name)

    def is_gone(self, name: str) -> bool:
        return name in self._gone

    def seen_at(self, box: str) -> str | None:
        return None

    def silent(self) -> dict[str, str]:
        return {}

    def doubts(self) -> list[str]:
        return self.tier_doubts()

    def tier_doubts(self) -> list[str]:
        if not self.is_tier_out_of_sight:
            return []
        return [f"the run was launched here, and {self.tier.root} is not there: is it mounted?"]

    @property
    def is_tier_out_of_sight(self) -> bool:
        """Whether the run was launched here, nobody has begun to end it, and its folder is gone."""
        results = self._project.results
        if self.tier.root.exists() or results.teardown.exists() or self._gone:
            return False
        return self._project.profile.name in profile_choice.profiles_of(results)

    def has_lost_its_tier(self, box: str) -> bool:
        return False

    def is_agent_alive(self, queue: str) -> bool | None:
        return None if self.is_tier_out_of_sight else lock.is_held(self.tier.lock(queue))

    def scheduled(self, queue: str) -> Scheduled | None:
        return None

    def call_off(self, queues: Sequence[str]) -> tuple[str, ...]:
        return ()

    def is_attempt_alive(self, box: str, cell: str) -> bool | None:
        return lock.is_held(self._project.scratch(box).log(cell))

    def progress_at(self, box: str, cell: str) -> str | None:
        path = self._project.scratch(box).out(cell) / progress.FILE
        with contextlib.suppress(OSError):
            return timestamp.utc(datetime.fromtimestamp(path.stat().st_mtime, timezone.utc))
        return None

    def listing_age_s(self, box: str) -> float:
        return 0.0

    def clock_ahead_s(self, box: str) -> float:
        return 0.0

    def ask(self, box: str, question: Question[A], *, timeout_s: float = ASK_TIMEOUT_S) -> A:
        plan = self._project.plan
        run = RunOnBox(plan.run, plan.durable_dir, plan.box(box).data_dir)
        return ask_over_ssh.ask(
            ask_over_ssh.command(plan.agent_python, self._onbox),
            box,
            question,
            run,
            environ=clean_environment(os.environ),
            timeout_s=timeout_s,
        )

    def tiers(self, boxes: Sequence[str]) -> list[str]:
        return list(boxes[:1])

    def place(self, box: str, path: str) -> Path:
        return Path(path)

    def cell_at(self, cell: str) -> Path:
        return self.tier.cell(cell)

    def kept(self, name: str) -> list[Path]:
        return []

    def forget(self) -> None:
        pass

    def close(self) -> None:
        pass

    @cached_property
    def _onbox(self) -> Path:
        return ask_over_ssh.agents_file(Home(self._project.root))
