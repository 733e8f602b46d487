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
from typing import TYPE_CHECKING, cast

from boxcar.laptop.common import show
from boxcar.laptop.ssh.ssh_errors import HostKeyChanged
from boxcar.shared.errors import TemporaryError

if TYPE_CHECKING:
    from boxcar.laptop.boxes.over_ssh import SshBoxes
    from boxcar.laptop.project.project import Project

GONE_WITHIN_S = 90.0
MEND = 'Mend that; of a box that is gone for good say it: invoke down --gone BOX --because "..."'
_LOOK_EVERY_S = 3.0


def problems(project: Project) -> list[str]:
    """Why it would not be safe: boxes that do not answer may hold what nobody has seen."""
    return project.boxes.doubts()


def price(project: Project) -> list[str]:
    """What is lost, in sentences."""
    verb, tiers = project.profile.meter_stop, project.profile.storage.tiers
    told = [f"credentials: {box.credentials} on {box.name}" for box in project.plan.boxes]
    told += [
        f"what {box.name} did after {project.boxes.seen_at(box.name)}, its last answer"
        for box in project.plan.boxes
        if project.boxes.is_gone(box.name)
    ]
    lost = [name for name in tiers if name not in verb.preserves]
    return [*told, *(f"{name}: {tiers[name].path or 'wherever it is mounted'}" for name in lost)]


def stays(project: Project) -> list[str]:
    """What the platform keeps, and what it goes on to bill."""
    verb, tiers = project.profile.meter_stop, project.profile.storage.tiers
    kept = [f"{name} on the platform: {tiers[name].path or 'as it is'}" for name in verb.preserves]
    return [*kept, *(f"still bills: {what}" for what in verb.still_bills)]


def stop(project: Project, done: dict[str, str], on_box: Callable[[str], None]) -> None:
    """End every box that `done` does not name yet.

    `on_box` is told of each box that has ended. Raises TemporaryError where something works there.
    """
    for box in project.plan.boxes:
        if box.name not in done:
            _end(project, box.name, box.credentials)
            on_box(box.name)
    words = project.profile.meter_stop.from_box
    if words is not None:
        # After all of that, and again by a `down` that goes on: a box that is off tells nothing.
        for box in project.plan.boxes:
            # What answers under the name of one that is gone is somebody else's, or has results
            # that nobody saw.
            if not _boxes(project).is_gone(box.name):
                _run_verb(project, box.name, shlex.split(words))


def to_do(project: Project) -> str | None:
    """What only the person can do; None where the boxes run the verb themselves."""
    verb = project.profile.meter_stop
    if verb.from_box is not None:
        return None
    names = ", ".join(box.name for box in project.plan.boxes)
    return f"Now {verb.verb} {names} yourself ({verb.where}): until then the meter runs"


def _end(project: Project, box: str, credentials: str) -> None:
    queues = [queue for queue, at in project.plan.queues.items() if at == box]
    found = project.boxes.ask(box, "end", queues=queues, credentials=credentials)
    if found["alive"]:
        names = ", ".join(name for living in found["alive"] for name in living.values())
        raise TemporaryError(
            f"{box}: {names} is at work there, and nothing was ended: "
            "invoke drain (it finishes its cell), or invoke stop"
        )


def _boxes(project: Project) -> SshBoxes:
    return cast("SshBoxes", project.boxes)  # no other kind of box has a program of its own


def _run_verb(project: Project, box: str, words: list[str]) -> None:
    """Have the box stop itself, and wait until it does not answer any more."""
    verb = project.profile.meter_stop.verb
    boxes = _boxes(project)
    with contextlib.suppress(TemporaryError):  # it takes the connection with it, as it should
        boxes.run(box, words)
    deadline = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < deadline:
        try:
            boxes.run(box, ["true"])
        except (TemporaryError, HostKeyChanged):
            show.say(f"{box}: {verb}: it does not answer any more. The console shows the meter")
            return
        time.sleep(_LOOK_EVERY_S)
    raise TemporaryError(
        f"{box}: still answers {GONE_WITHIN_S:.0f} s after {shlex.join(words)}. "
        f"{verb} it by hand ({project.profile.meter_stop.where}), then again: invoke down"
    )
