"""`invoke drain`: the running cell is finished and proven, and no further one starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boxcar.laptop.common import show
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.verbs import control
from boxcar.shared.files.control import DRAIN
from boxcar.shared.message import Command, Message

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project


def drain(
    project: Project, *, queues: Sequence[str] | None = None, boxes: Sequence[str] | None = None
) -> int:
    """Ask the agents of these queues and boxes (default: all) to end after the running cell."""
    with open_site(project, show.say) as site:
        asked = control.request(site, DRAIN, queues, boxes)
    for queue in asked:
        first = f"finishes {queue.active}, then " if queue.active else ""
        show.say(f"{queue.name} on {queue.box}: {first}ends; no further cell starts")
    if asked:
        show.say(Message("To see it end", Command("watch")))
        show.say(Message("To continue later", Command("launch")))
    return 0
