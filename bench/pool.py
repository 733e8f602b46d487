"""How long three boxes take for one queue file while one of them dies: beside list scheduling of
the same lines, which knows when each box is free, loses that box at the same moment, and begins its
cell anew once it is called gone. The cells sleep, so that two cores have room for three boxes.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.row import Row
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.verbs import launch
from boxcar.shared.disk import lock
from boxcar.shared.files import attempt, heartbeat

CELLS, SHORTEST_S, LONGEST_S = 60, 0.5, 12.0
BOXES = ("box-a", "box-b", "box-c")
DIES = "box-c"
DIES_AFTER_S, GONE_AFTER_S = 15.0, 5.0
WITHIN_S = 600
MOST_RATIO = 1.1
SCRIPT = """\
import json, sys, time
began = time.time()
time.sleep(float(sys.argv[3]))
with open(sys.argv[1] + "/m.json", "w") as file:
    json.dump({"began": began, "ended": time.time()}, file)
"""
_COMMON = {"command": "cell.py {out} {more}", "launcher": "python", "artifacts": ["m.json"]}
_JOB = {"name": "bench-pool", "queues": {"all.txt": list(BOXES)}}


def measure(folder: Path) -> list[Row]:
    dice = random.Random(52)
    takes_s = [round(dice.uniform(SHORTEST_S, LONGEST_S), 1) for _ in range(CELLS)]
    project = sleeping_project(folder, takes_s, _JOB)
    launch.launch(project, environ={})
    began = _began(project)
    time.sleep(max(0.0, began + DIES_AFTER_S - time.time()))
    _kill_box(project)
    died_s = time.time() - began
    time.sleep(GONE_AFTER_S)
    gone_s = time.time() - began
    launch.launch(project, gone=[DIES], because="the bench has killed it", environ={})
    ends = [result["ended"] for result in wait_for_results(project)]
    ideal_s = makespan_s(takes_s, len(BOXES), died_s, gone_s)
    took_s = max(ends) - began
    what = f"{CELLS} cells in a pool of {len(BOXES)} boxes, of which one dies"
    return [Row(what, took_s, "s", ideal_s, "list scheduling", most_ratio=MOST_RATIO)]


def makespan_s(takes_s: Sequence[float], boxes: int, died_s: float, gone_s: float) -> float:
    """When the last line ends, where the last box dies and its cell begins anew once it is gone."""
    free, left, ends_s = [(0.0, box) for box in range(boxes)], list(takes_s), 0.0
    lost: list[float] = []
    while left or lost:
        at_s, box = heapq.heappop(free)
        if box == boxes - 1 and at_s >= died_s:
            continue
        if lost and (at_s >= gone_s or not left):
            at_s, cell_s = max(at_s, gone_s), lost.pop()
        else:
            cell_s = left.pop(0)
        if box == boxes - 1 and at_s + cell_s > died_s:
            lost.append(cell_s)
            continue
        ends_s = max(ends_s, at_s + cell_s)
        heapq.heappush(free, (at_s + cell_s, box))
    return ends_s


def sleeping_project(folder: Path, takes_s: Sequence[float], job: dict[str, Any]) -> Project:
    """Whose cells, all in one queue file, sleep so long each."""
    (folder / "cell.py").write_text(SCRIPT)
    (folder / "job.yaml").write_text(yaml.safe_dump(_COMMON | job))
    lines = (f"- - name=c{at:02d} --for {cell_s}\n" for at, cell_s in enumerate(takes_s))
    (folder / "all.txt").write_text("".join(lines))
    return open_project(folder / "job.yaml", "local")


def _began(project: Project) -> float:
    """When the first cell began, by the first that has ended."""
    for _ in _looks():
        if results := list(_results(project)):
            return float(min(result["began"] for result in results))
    raise TimeoutError("no cell has ended")


def _kill_box(project: Project) -> None:
    """Its agent first, which would start the cell again."""
    beat = heartbeat.read_heartbeat(project.on_tier.heartbeat(f"all@{DIES}"))
    assert beat
    os.kill(beat.pid, signal.SIGKILL)
    scratch = project.scratch(DIES)
    alive = [path.name for path in scratch.cells.iterdir() if lock.is_held(scratch.log(path.name))]
    for cell in alive:  # the process ids of others may be somebody else's by now
        running = attempt.read_running(scratch.running(cell))
        started = attempt.read_processes(scratch.processes(cell))
        pids = [running.pid] if running else []
        for pid in [*pids, *(process.pid for process in (started.processes if started else ()))]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def wait_for_results(project: Project) -> list[dict[str, Any]]:
    """Of all cells, once they are published: when each `began` and `ended`."""
    for _ in _looks():
        if len(results := list(_results(project))) == len(project.plan.cells):
            return results
    raise TimeoutError(f"not all cells were published within {WITHIN_S} s")


def _results(project: Project) -> Iterator[dict[str, Any]]:
    for cell in project.plan.cells:
        with contextlib.suppress(FileNotFoundError):
            yield json.loads((project.on_tier.cell(cell.name) / "m.json").read_text())


def _looks() -> Iterator[None]:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        yield
        time.sleep(0.5)
