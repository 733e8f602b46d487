"""What looks at a run grows with its cells and no faster: counted in calls, whatever the load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import journal_lines
import pytest
import run_on_disk
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    make_run,
)

from boxcar.laptop.common import show
from boxcar.laptop.run import roster
from boxcar.laptop.run.view import blocked_of_run
from boxcar.laptop.verbs import next_step, pull, status
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.laptop.view.run_tables import tables_of_run
from boxcar.shared import state
from boxcar.shared.files.journal_chain import Event

FEW, MANY = 50, 400
# What is done once makes it less than MANY / FEW; where each cell walks all others it is much more.
MOST = MANY / FEW * 1.1


def _run(root: Path, count: int) -> RunOnDisk:
    """Half of its cells are verified, one is running, and the others wait."""
    names = [f"c{number:03d}" for number in range(count)]
    run = make_run(root, {"queue_1": [f"configs/{name}.yaml recon 3" for name in names]})
    said = [agent_started()]
    for name in names[: count // 2]:
        said += [cell_started(name), cell_progress(name, 10, loss=0.5), cell_verified(name)]
        run.publish(name)
    said += [cell_started(names[count // 2])]
    events = (
        Event(seq, f"evt_{seq}", from_now(0), type, journal_lines.COMMON | data)
        for seq, (type, data) in enumerate(said, 1)
    )
    path = run.site.tier.journal("queue_1")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(journal_lines.chained(events))
    return run


def _of_many_queues(root: Path, count: int) -> RunOnDisk:
    """A queue for each of so many boxes, with two cells that are done."""
    lines = {
        f"q{at}": [f"configs/c{at}-{cell}.yaml recon 3" for cell in "ab"] for at in range(count)
    }
    run = make_run(root, lines)
    for queue in lines:
        run.say(queue, agent_started(), *(cell_verified(f"c{queue[1:]}-{cell}") for cell in "ab"))
    return run


def _dropped(root: Path, count: int) -> RunOnDisk:
    """Planned cells that never ran, each behind a # by now."""
    lines = [f"configs/c{at}.yaml recon 3" for at in range(count)]
    run = make_run(root, {"queue_1": lines})
    run.site.tier.queue("queue_1").write_text("".join(f"# {line}\n" for line in lines))
    return run


def _chain(root: Path, count: int) -> RunOnDisk:
    """Each cell comes after the one before, and the first has failed."""
    lines = [f"configs/c{at}.yaml recon 3 after=c{at - 1}" for at in range(1, count)]
    run = make_run(root, {"queue_1": ["configs/c0.yaml recon 3", *lines]})
    run.say("queue_1", agent_started(), cell_failed("c0"))
    return run


def _calls(act: Callable[[], object]) -> int:
    count = 0

    def hook(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    act()  # what is kept or imported the first time
    sys.setprofile(hook)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


# For each cell of a table in a pipe: its seven fields, and a few words on it.
MOST_CALLS = 60


def _table(run: RunOnDisk) -> Callable[[], object]:
    view, facts = run.look(), Facts("local", "watch", "")

    def act() -> None:
        for table in tables_of_run(RunRows(view, facts)):
            show.table(table.title, table.columns, table.rows)

    return act


def test_a_row_of_a_table_in_a_pipe_costs_little(tmp_path: Path) -> None:
    few, many = (_run(tmp_path / str(count), count) for count in (FEW, MANY))
    each = (_calls(_table(many)) - _calls(_table(few))) / (MANY - FEW)
    assert each < MOST_CALLS, each


def _document(run: RunOnDisk) -> Callable[[], object]:
    view = run.look()
    return lambda: status.document(run.site, view)


def _board(run: RunOnDisk) -> Callable[[], object]:
    view, facts = run.look(), Facts("local", "watch", "")
    return lambda: layout(RunRows(view, facts), 100, 40)


def _queue_table(run: RunOnDisk) -> Callable[[], object]:
    view = run.look()
    return lambda: tables_of_run(RunRows(view, Facts("local", "watch", "")))


def _next_step(run: RunOnDisk) -> Callable[[], object]:
    """Of queues whose agents are gone, with work left and without."""
    view = run.look()
    return lambda: next_step._next_for_queues(view, run.site)


def _merged(run: RunOnDisk) -> Callable[[], object]:
    states = {queue.name: queue.state for queue in run.look().queues if queue.state}
    return lambda: state.merge(states, {})


def _judged(run: RunOnDisk) -> Callable[[], object]:
    found = roster.of_plan(run.site.plan)
    return lambda: roster.judge_dropped(run.site, found, found.cells)


def _blocked(run: RunOnDisk) -> Callable[[], object]:
    view = run.look()
    return lambda: blocked_of_run(view)


def _failed_logs(run: RunOnDisk) -> Callable[[], object]:
    cells = {cell.name for cell in run.look().cells}
    # A view of its own each time: what it keeps counts as well.
    return lambda: pull._pull_failed_logs(run.site, run.look(), cells)


@pytest.mark.parametrize("prepare", [lambda run: run.look, _document, _board, _failed_logs])
def test_it_grows_with_the_cells_and_no_faster(
    tmp_path: Path, prepare: Callable[[RunOnDisk], Callable[[], object]]
) -> None:
    few, many = (_run(tmp_path / str(count), count) for count in (FEW, MANY))
    assert _calls(prepare(many)) / _calls(prepare(few)) < MOST


def _steps(act: Callable[[], object]) -> int:
    """Of Python's machine: also those of a loop that calls nothing."""
    count = 0

    def hook(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return hook

    act()
    before = sys.gettrace()
    sys.settrace(hook)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("make", "prepare"),
    [
        (_of_many_queues, _queue_table),
        (_of_many_queues, _merged),
        (_of_many_queues, _next_step),
        (_dropped, _judged),
        (_chain, _blocked),
    ],
)
def test_neither_queues_nor_dropped_cells_nor_a_long_chain_are_walked_for_each_other(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path, int], RunOnDisk],
    prepare: Callable[[RunOnDisk], Callable[[], object]],
) -> None:
    monkeypatch.setattr(run_on_disk, "ascii_lowercase", [f"b{at}" for at in range(80)])
    few, many = (make(tmp_path / str(count), count) for count in (10, 80))
    assert _steps(prepare(many)) / _steps(prepare(few)) < 8 * 1.1
