"""The meter-stop verb over ssh: secrets go, nothing starts again, then the platform's own verb.

Boxcar holds no account. Where the box can run the verb itself (AutoDL's shutdown), it is asked to;
elsewhere the person is told what to click. Files on a box are not removed: the verb does that where
it does, and what survives it is said.

Not covered: whether the platform really stopped billing. Only its console knows.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from boxcar.laptop.boxes.over_ssh import SshBoxes
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.ssh.ssh_errors import HostKeyChanged
from boxcar.laptop.teardown.still_running import DRAIN_OR_STOP
from boxcar.shared.errors import TemporaryError
from boxcar.shared.message import Command
from boxcar.shared.wire import asks

GONE_WITHIN_S = 90.0
_LOOK_EVERY_S = 3.0


@dataclass(frozen=True)
class SshMeter:
    """See site.Meter. `tell` hears of each box that has stopped itself."""

    project: Project
    boxes: SshBoxes
    tell: Tell
    fix: ClassVar[Command | str] = Command(
        "down", ("--gone", "BOX", "--because", "…"), note="only for a box that is gone for good"
    )

    def problems(self) -> list[str]:
        """Boxes that do not answer may hold what nobody has seen."""
        return self.boxes.doubts()

    def price(self) -> list[str]:
        profile, boxes = self.project.profile, self.project.plan.boxes
        told = [f"credentials: {box.credentials} on {box.name}" for box in boxes]
        told += [
            f"what {box.name} did after {self.boxes.seen_at(box.name)}, its last answer"
            for box in boxes
            if self.boxes.is_gone(box.name)
        ]
        tiers = profile.storage.tiers
        lost = [name for name in tiers if name not in profile.meter_stop.preserves]
        return told + [f"{name}: {tiers[name].path or 'wherever it is mounted'}" for name in lost]

    def stays(self) -> list[str]:
        """What the platform keeps, and what it goes on to bill."""
        verb, tiers = self.project.profile.meter_stop, self.project.profile.storage.tiers
        kept = [
            f"{name} on the platform: {tiers[name].path or 'as it is'}" for name in verb.preserves
        ]
        return [*kept, *(f"still bills: {what}" for what in verb.still_bills)]

    def stop(self, done: dict[str, str], on_box: Callable[[str], None]) -> None:
        """End every box. Raises TemporaryError where something works there."""
        for box in self.project.plan.boxes:
            if box.name not in done:
                self._end(box.name, box.credentials)
                on_box(box.name)
        words = self.project.profile.meter_stop.from_box
        if words is not None:
            # After all of that, and again by a `down` that goes on: a box that is off tells
            # nothing.
            for box in self.project.plan.boxes:
                # What answers under the name of one that is gone is somebody else's, or has
                # results that nobody saw.
                if not self.boxes.is_gone(box.name):
                    self._run_verb(box.name, shlex.split(words))

    def to_do(self) -> str | None:
        """None where the boxes run the verb themselves."""
        verb = self.project.profile.meter_stop
        if verb.from_box is not None:
            return None
        names = ", ".join(box.name for box in self.project.plan.boxes)
        return f"Now {verb.verb} {names} yourself ({verb.where}): until then the meter runs"

    def _end(self, box: str, credentials: str) -> None:
        queues = tuple(queue for queue, at in self.project.plan.queues.items() if at == box)
        alive = self.boxes.ask(box, asks.End(queues, credentials)).alive
        if alive:
            names = ", ".join(str(at_work.queue or at_work.cell) for at_work in alive)
            raise TemporaryError(
                f"{box}: {names} is at work there, so nothing was ended", DRAIN_OR_STOP
            )

    def _run_verb(self, box: str, words: list[str]) -> None:
        """Have the box stop itself, and wait until it does not answer any more."""
        stop = self.project.profile.meter_stop
        with contextlib.suppress(TemporaryError):  # it takes the connection with it, as it should
            self.boxes.run(box, words)
        deadline = time.monotonic() + GONE_WITHIN_S
        while time.monotonic() < deadline:
            try:
                self.boxes.run(box, ["true"])
            except (TemporaryError, HostKeyChanged):
                self.tell(
                    f"{box}: {stop.verb}: it does not answer any more. The console shows the meter"
                )
                return
            time.sleep(_LOOK_EVERY_S)
        raise TemporaryError(
            f"{box}: still answers {GONE_WITHIN_S:.0f} s after {shlex.join(words)}. "
            f"{stop.verb} it by hand ({stop.where}), then again",
            Command("down"),
        )
