"""What drain and stop share: a request to the agents of a run, in each queue's control file.

The laptop writes the file, the agent obeys it, and the next launch sets it back to `run`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from boxcar.formats import codec, durable, timestamp
from boxcar.formats.control import Control
from boxcar.formats.errors import InputError
from boxcar.laptop import show
from boxcar.laptop.view import QueueView, RunView, look

if TYPE_CHECKING:
    from boxcar.laptop.project import Project


def request(project: Project, want: str, queues: Sequence[str] | None) -> list[QueueView]:
    """Ask the agents of these queues (default: all), and return the queues that were asked.

    Where nothing runs, nothing is written: the next launch would meet a request that was meant for
    an agent of the past. Raises InputError for an unknown queue, before anything is written.
    """
    view = look(project, timestamp.utc_now())
    named = [view.queue(name) for name in _known(view, queues)]
    asked = [queue for queue in named if queue.is_alive is not False]
    for queue in named:
        if queue not in asked:
            show.say(f"{queue.name}: nothing runs; nothing was asked")
    for queue in asked:
        document = codec.to_document(Control(want, timestamp.utc_now()))
        durable.write_whole(project.durable.control(queue.name), document)
    return asked


def _known(view: RunView, queues: Sequence[str] | None) -> list[str]:
    known = [queue.name for queue in view.queues]
    problems = []
    for name in queues or ():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"its queues: {', '.join(known)}"
            problems.append(f"{name}: the run {view.run} has no such queue; {hint}")
    if problems:
        raise InputError(problems)
    return list(dict.fromkeys(queues or known))
