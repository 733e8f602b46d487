"""`invoke drain`: the running cell is finished and proven, and no further one starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boxcar.laptop.common import show
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.verbs import control
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import Command, Message
from boxcar.shared.files.control import DRAIN

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project


def drain(
    project: Project, *, queues: Sequence[str] | None = None, boxes: Sequence[str] | None = None
) -> int:
    """Ask the agents of these queues and boxes (default: all) to end after the running cell."""
    with open_site(project, show.say) as site:
        asked = control.request(site, DRAIN, queues, boxes)
    for queue in asked:
        which = "drains_after" if queue.is_at_cell else "drains"
        about = {"queue": queue.name, "box": queue.box, "cell": queue.active}
        show.say(Sentence(f"orders.{which}", **about))
    if asked:
        show.say(Message(Sentence("orders.see_end"), Command("watch")))
        show.say(Message(Sentence("orders.go_on_later"), Command("launch")))
    return 0
