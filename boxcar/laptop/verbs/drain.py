"""`invoke drain`: the running cell is finished and proven, and no further one starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boxcar.laptop.common import show
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.verbs import control
from boxcar.shared.errors import Command, Message, some
from boxcar.shared.files.control import DRAIN
from boxcar.shared.sentence import Sentence, _, mark

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project

_MOST_NAMED = 8


def drain(
    project: Project, *, queues: Sequence[str] | None = None, boxes: Sequence[str] | None = None
) -> int:
    """Ask the agents of these queues and boxes (default: all) to end after the running cell."""
    with open_site(project, show.say) as site:
        asked = control.request(site, DRAIN, queues, boxes)
    for queue in asked:
        which = (
            mark("{queue} on {box}: finishes {cells}, then ends; no new cell starts")
            if queue.at_work
            else mark("{queue} on {box}: ends; no new cell starts")
        )
        if queue.is_alive is False:
            which = mark("{box} stays on: its shutdown was called off")
        cells = some(queue.at_work, _MOST_NAMED)
        about = {"queue": queue.name, "box": queue.box, "cells": cells}
        show.say(Sentence(which, **about))
    if any(queue.is_alive is not False for queue in asked):
        show.say(Message(_("To see it end"), Command("watch")))
        show.say(Message(_("To continue later"), Command("launch")))
    return 0
