"""`invoke status`: where everything stands, once, and the one thing to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boxcar.formats import codec, control, digest, manifest, receipt, state, timestamp
from boxcar.formats.errors import DamagedError
from boxcar.formats.journal import Event
from boxcar.formats.paths import ResultPaths
from boxcar.laptop import show
from boxcar.laptop.results_folder import read_teardown
from boxcar.laptop.view import (
    CellView,
    QueueView,
    RunView,
    condition,
    heartbeat_age_s,
    look,
)

if TYPE_CHECKING:
    from boxcar.laptop.project import Project

WARNINGS_SHOWN = 5
METRICS_SHOWN = 3
NOT_METRICS = ("step", "epoch", "at", "time")
IN_TROUBLE = ("agent dead", "damaged", "unknown")
AT_EASE = ("not started", "running", "idle", "done")


@dataclass(frozen=True)
class TableView:
    """A table before it is drawn: status prints it once, watch redraws it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class NextStep:
    """What to type next, or None where nothing is left to do; and why."""

    command: str | None
    because: str


def status(project: Project, *, as_json: bool = False) -> int:
    """Show the run. Returns 1 where a cell failed, or a queue is dead, damaged or unreadable."""
    view = look(project, timestamp.utc_now())
    present(project, view, as_json=as_json)
    return exit_code(view)


def present(project: Project, view: RunView, *, as_json: bool) -> None:
    """The view as tables and notes, or as one JSON document."""
    step = next_step(view, project)
    if as_json:
        show.json_document(document(view, step))
        return
    for table in tables(view):
        show.table(table.title, table.columns, table.rows)
    for note in notes(view):
        show.say(note)
    show.say(sentence(step))


def exit_code(view: RunView) -> int:
    words = {condition(queue, view.at).word for queue in view.queues}
    has_failed = any(cell.word == "failed" for cell in view.cells)
    return 1 if has_failed or words & set(IN_TROUBLE) else 0


def tables(view: RunView) -> list[TableView]:
    """The queues, the cells, and the last warnings where there are any."""
    found = [_queue_table(view), _cell_table(view)]
    return [*found, _warning_table(view)] if warnings(view) else found


def notes(view: RunView) -> list[str]:
    """What a table has no room for: the queues that are not at ease, and what could not be read."""
    found = list(view.problems)
    for queue in view.queues:
        now = condition(queue, view.at)
        if now.word not in AT_EASE or (queue.is_alive and queue.wanted != control.RUN):
            found.append(f"{queue.name}: {now.word}: {now.sentence}")
        # A living agent may be in the middle of writing its line.
        if queue.is_torn and not queue.is_alive:
            found.append(
                f"{queue.name}: the last line of its journal was torn by a crash and does not count"
            )
        found += [f"{queue.name}: {problem}" for problem in queue.problems]
    return found


def warnings(view: RunView) -> list[tuple[str, Event]]:
    """The last warnings of all queues with their queue, oldest first."""
    found = [
        (queue.name, event)
        for queue in view.queues
        if queue.state
        for event in queue.state.warnings
    ]
    return sorted(found, key=lambda pair: pair[1].at)[-WARNINGS_SHOWN:]


def document(view: RunView, step: NextStep) -> dict[str, Any]:
    """What `--json` prints: run, at, queues, cells, problems, warnings and next.

    A queue has queue, box, condition, sentence, is_alive (null: not known), cell, step,
    heartbeat_age_s, heartbeat, release, wanted and problems. A cell has cell, queue, box, task,
    epochs, index, state, attempts, seconds, progress, metrics and detail, which is its state's own
    data (such as failure and reason). `next` has command (null: nothing to do) and because.
    """
    return {
        "run": view.run,
        "at": view.at,
        "queues": [_queue_document(view, queue) for queue in view.queues],
        "cells": [_cell_document(cell) for cell in view.cells],
        "problems": list(view.problems),
        "warnings": [{"at": event.at, **event.data} for _, event in warnings(view)],
        "next": codec.encode(step),
    }


def next_step(view: RunView, project: Project) -> NextStep:
    """The one command that brings the run on, from the view and from the results here."""
    results = project.results
    # Where the tier is there again, the run was launched anew after its teardown.
    if not project.durable.root.exists() and _is_torn_down(results):
        return NextStep(None, f"the run was torn down; its results are in {results.root}")
    return _next_for_queues(view) or _next_for_results(view, results)


def sentence(step: NextStep) -> str:
    return f"next: {step.command}  ({step.because})" if step.command else f"next: {step.because}"


def duration(seconds: float) -> str:
    """Seconds as people read them: 41s, 1m23s, 2h05m."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def named_numbers(values: dict[str, Any], most: int | None = None) -> str:
    """Metrics in a line: `loss 0.41, psnr 27.3`. Step and epoch have columns of their own."""
    numbers = [
        f"{name} {value:.4g}"
        for name, value in values.items()
        if isinstance(value, (int, float)) and name not in NOT_METRICS
    ]
    return ", ".join(numbers[:most])


def _next_for_queues(view: RunView) -> NextStep | None:
    words = {queue.name: condition(queue, view.at).word for queue in view.queues}
    for trouble, step in (
        ("damaged", NextStep(None, "{} damaged: mend what is said above, nothing else is safe")),
        ("unknown", NextStep("invoke status", "{} not readable now: look again, decide nothing")),
        ("agent dead", NextStep("invoke launch", "{} without an agent: it goes on where it was")),
    ):
        if named := [name for name, word in words.items() if word == trouble]:
            are = f"{', '.join(named)} {'is' if len(named) == 1 else 'are'}"
            return NextStep(step.command, step.because.format(are))
    if any(queue.is_alive for queue in view.queues):
        return NextStep("invoke watch", "agents are at work; nothing has to be done")
    unfinished = [cell for cell in view.cells if cell.word not in ("verified", "failed")]
    if unfinished:
        return NextStep("invoke launch", f"{len(unfinished)} cell(s) have not been run to the end")
    return None


def _next_for_results(view: RunView, results: ResultPaths) -> NextStep:
    failed = [cell.name for cell in view.cells if cell.word == "failed"]
    if _is_settled(view, results):
        return NextStep("invoke down", "every cell is settled; the boxes may go when you say so")
    if missing := [cell.name for cell in view.cells if _is_missing_here(cell, results)]:
        return NextStep("invoke pull", f"{len(missing)} verified cell(s) are not here yet")
    if failed:
        return NextStep(
            f"invoke explain --cell {failed[0]}", f"{len(failed)} cell(s) failed and need a person"
        )
    return NextStep("invoke verify", "every cell is here; load each before anything is torn down")


def _is_settled(view: RunView, results: ResultPaths) -> bool:
    """Whether the receipt speaks of this roster and these manifests, and leaves nothing open."""
    # A receipt that cannot be read settles nothing: verify makes it anew.
    try:
        found = receipt.read_run(results.receipt)
    except (OSError, DamagedError):
        return False
    seen = {verdict.cell: verdict.manifest_sha256 for verdict in found.cells}
    return found.is_full and all(
        cell.name in seen and _manifest_sha256(cell) in (None, seen[cell.name])
        for cell in view.cells
    )


def _is_missing_here(cell: CellView, results: ResultPaths) -> bool:
    """Whether a verified cell does not lie in the results. Others have nothing to be pulled."""
    sha256 = _manifest_sha256(cell)
    try:
        return sha256 is not None and manifest.sha256(results.manifest(cell.name)) != sha256
    except OSError:
        return True


def _manifest_sha256(cell: CellView) -> str | None:
    now = cell.record.state if cell.record else None
    return now.manifest_sha256 if isinstance(now, state.Verified) else None


def _is_torn_down(results: ResultPaths) -> bool:
    # A teardown that cannot be read has not finished: `down` itself says what is wrong with it.
    try:
        teardown = read_teardown(results)
    except (OSError, DamagedError):
        return False
    return teardown is not None and teardown.finished_at is not None


def _queue_table(view: RunView) -> TableView:
    columns = ("queue", "box", "condition", "cell", "step", "heartbeat", "release")
    rows = tuple(
        (
            queue.name,
            queue.box,
            condition(queue, view.at).word,
            queue.active,
            _step(view, queue),
            None if (age_s := heartbeat_age_s(queue, view.at)) is None else duration(age_s),
            digest.short(queue.session.release) if queue.session else None,
        )
        for queue in view.queues
    )
    return TableView(f"{view.run}: queues", columns, rows)


def _cell_table(view: RunView) -> TableView:
    columns = ("cell", "queue", "task", "state", "attempts", "step", "epoch", "metric", "time")
    rows = tuple(
        (
            cell.name,
            cell.queue,
            cell.task,
            cell.word,
            cell.record.attempts if cell.record else None,
            cell.progress.get("step"),
            cell.progress.get("epoch"),
            named_numbers(cell.metrics or cell.progress, METRICS_SHOWN),
            duration(cell.seconds) if cell.seconds else None,
        )
        for cell in view.cells
    )
    return TableView(f"{view.run}: cells", columns, rows)


def _warning_table(view: RunView) -> TableView:
    rows = tuple(
        (event.at, queue, event.data.get("what"), event.cell, event.data.get("text"))
        for queue, event in warnings(view)
    )
    return TableView("warnings", ("at", "queue", "what", "cell", "text"), rows)


def _step(view: RunView, queue: QueueView) -> object:
    return next((c.progress.get("step") for c in view.cells if c.name == queue.active), None)


def _queue_document(view: RunView, queue: QueueView) -> dict[str, Any]:
    found = condition(queue, view.at)
    return {
        "queue": queue.name,
        "box": queue.box,
        "condition": found.word,
        "sentence": found.sentence,
        "is_alive": queue.is_alive,
        "cell": queue.active,
        "step": _step(view, queue),
        "heartbeat_age_s": heartbeat_age_s(queue, view.at),
        "heartbeat": codec.encode(queue.heartbeat),
        "release": queue.session.release if queue.session else None,
        "wanted": queue.wanted,
        "problems": list(queue.problems),
    }


def _cell_document(cell: CellView) -> dict[str, Any]:
    return {
        "cell": cell.name,
        "queue": cell.queue,
        "box": cell.box,
        "task": cell.task,
        "epochs": cell.epochs,
        "index": cell.index,
        "state": cell.word,
        "attempts": cell.record.attempts if cell.record else None,
        "seconds": cell.seconds,
        "progress": cell.progress,
        "metrics": cell.metrics,
        "detail": codec.encode(cell.record.state) if cell.record else {},
    }
