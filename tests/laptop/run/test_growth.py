"""What looks at a run grows with its cells and no faster: counted in calls, whatever the load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import journal_lines
import pytest
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    make_run,
)

from boxcar.laptop.board.history import NOTHING_SEEN
from boxcar.laptop.board.snapshot import Facts, snapshot
from boxcar.laptop.verbs import status
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


def _document(run: RunOnDisk) -> Callable[[], object]:
    view = run.look()
    return lambda: status.document(run.site, view)


def _board(run: RunOnDisk) -> Callable[[], object]:
    view, facts = run.look(), Facts("local", "watch", "")
    return lambda: snapshot(view, NOTHING_SEEN, facts)


@pytest.mark.parametrize("prepare", [lambda run: run.look, _document, _board])
def test_it_grows_with_the_cells_and_no_faster(
    tmp_path: Path, prepare: Callable[[RunOnDisk], Callable[[], object]]
) -> None:
    few, many = (_run(tmp_path / str(count), count) for count in (FEW, MANY))
    assert _calls(prepare(many)) / _calls(prepare(few)) < MOST
