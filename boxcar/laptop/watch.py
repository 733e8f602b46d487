"""`invoke watch`: the same as status, live, until no agent is left.

A queue that has ended may leave webhooks undelivered (the network was down, the agent was stopped):
watch has the release's own `onbox deliver` send them. The secrets go from the box's credentials
file to that process; they pass neither this one nor a command line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from boxcar.formats import delivered, release, timestamp
from boxcar.formats.errors import DamagedError
from boxcar.formats.journal import PUBLIC_TYPES
from boxcar.laptop import show
from boxcar.laptop.condition import condition, may_run
from boxcar.laptop.next_step import next_step, sentence
from boxcar.laptop.status import exit_code, notes, present, tables, warnings
from boxcar.laptop.view import QueueView, RunView, look

if TYPE_CHECKING:
    from boxcar.laptop.project import Project

DELIVER_TIMEOUT_S = 90.0  # the verb itself stops trying after 60
INTERRUPTED = 130
ENDED = ("done", "stopped", "drained")


def watch(project: Project, *, interval_s: float = 2.0, as_json: bool = False) -> int:
    """Show the run until no agent is left; the exit code is that of status, or 130 for Ctrl-C.

    On a terminal the tables are redrawn in place. Elsewhere each change is a line, and the tables
    come at the end. With `as_json` the changes go to stderr, and the document comes at the end.
    """
    is_live = sys.stdout.isatty() and not as_json
    try:
        if is_live:
            view = _redraw(project, interval_s)
        else:
            view = _print_changes(project, interval_s, sys.stderr if as_json else sys.stdout)
    except KeyboardInterrupt:
        show.say("The run goes on without watch. Look again: invoke watch")
        return INTERRUPTED
    if not is_live:
        present(project, view, as_json=as_json)
    return exit_code(view)


def changes(before: RunView | None, after: RunView) -> list[str]:
    """What is different now: a line for each queue, cell, warning and problem that is."""
    seen = set(_standings(before)) if before else set()
    return [line for standing, line in _standings(after).items() if standing not in seen]


def _standings(view: RunView) -> dict[tuple[object, ...], str]:
    """A line for everything that stands now, by what makes it worth saying again."""
    found: dict[tuple[object, ...], str] = {}
    for queue in view.queues:
        now = condition(queue, view.at)
        found[queue.name, now.word, queue.wanted] = f"{queue.name}: {now.word}: {now.sentence}"
        found |= {(queue.name, what): f"{queue.name}: {what}" for what in queue.problems}
    found |= {(what,): what for what in view.problems}
    for cell in view.cells:
        attempts = cell.record.attempts if cell.record else None
        if attempts != 0:
            line = f"{cell.name}: {cell.word}, attempt {attempts or 'unknown'}"
            found[cell.name, cell.word, attempts] = line
    for queue_name, event in warnings(view):
        found[event.id,] = f"{queue_name}: warning: {event.data.get('text')}"
    return found


def undelivered(queue: QueueView, sent: delivered.Delivered) -> int:
    """How many public events some endpoint has not taken. Where no endpoint is known: all."""
    public = [event.seq for event in queue.events if event.type in PUBLIC_TYPES]
    if not sent.endpoints:
        return len(public)
    reached = [cursor.seq for cursor in sent.endpoints.values() if not cursor.disabled]
    return sum(seq > min(reached) for seq in public) if reached else 0


def deliver(project: Project, queue: QueueView) -> None:
    """Have the queue's release send what its agent could not. Said, bounded, never raised."""
    path = project.durable.delivered(queue.name)
    try:
        waiting = undelivered(queue, delivered.read(path))
        credentials = _credentials(project, queue)
        if not waiting or credentials is None:
            return
        problem = _run_deliver(project, queue, credentials)
        sent = delivered.read(path)
    except (DamagedError, OSError) as error:
        problem, sent = str(error), delivered.Delivered({})
    if problem:
        show.say(
            f"{queue.name}: webhooks wait in the journal and could not be delivered: {problem}\n"
            "They are kept. Try again: invoke watch"
        )
    elif sent.endpoints:
        show.say(f"{queue.name}: {waiting - undelivered(queue, sent)} late webhook(s) delivered")


def _credentials(project: Project, queue: QueueView) -> Path | None:
    """The box's file of secrets, where it is in reach."""
    known = [Path(box.credentials) for box in project.plan.boxes if box.name == queue.box]
    return next((path for path in known if path.exists()), None)


def _run_deliver(project: Project, queue: QueueView, credentials: Path) -> str | None:
    """Run the box's own verb under the queue's release; what went wrong, or None."""
    if queue.session is None:
        return None
    folder = project.durable.release(queue.session.release)
    agent = str(folder / release.read(folder).onbox)
    command = [project.plan.agent_python, "-I", "-S", agent, "deliver"]
    command += ["--release", str(folder), "--queue", queue.name]
    return _run(command, {"BOXCAR_CREDENTIALS": str(credentials)})


def _run(command: list[str], env: dict[str, str]) -> str | None:
    try:
        done = subprocess.run(
            command,
            env=os.environ | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DELIVER_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {DELIVER_TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return None
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    return f"{command[3]} ended with {done.returncode}: {said[-500:] or 'without a word'}"


def _looks(project: Project, interval_s: float) -> Iterator[RunView]:
    """One look after the other, until no agent is left. Doubt counts as an agent."""
    tried: set[tuple[str, int]] = set()
    while True:
        view = look(project, timestamp.utc_now())
        yield view
        for queue in view.queues:
            ending = (queue.name, len(queue.events))
            if condition(queue, view.at).word in ENDED and ending not in tried:
                tried.add(ending)
                deliver(project, queue)
        if not any(may_run(queue, view.at) for queue in view.queues):
            return
        time.sleep(interval_s)


def _redraw(project: Project, interval_s: float) -> RunView:
    # What deliver says meanwhile goes above the tables: Live takes stderr over.
    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        for view in _looks(project, interval_s):
            live.update(_drawn(project, view), refresh=True)
    return view


def _print_changes(project: Project, interval_s: float, stream: TextIO) -> RunView:
    before = None
    for view in _looks(project, interval_s):
        for change in changes(before, view):
            print(show.plain(change), file=stream, flush=True)
        before = view
    return view


def _drawn(project: Project, view: RunView) -> Group:
    lines = [*notes(view), sentence(next_step(view, project))]
    return Group(
        *(show.draw(t.title, t.columns, t.rows) for t in tables(view)),
        *(Text(show.plain(line)) for line in lines),
    )
