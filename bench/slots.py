"""How long two slots of one box take for cells that sleep, in a fixed order: beside list scheduling
of the same lines, and beside HyperQueue and GNU parallel, which run the same script meanwhile. From
the first cell's begin to the last one's end, so that nobody's own start counts. Below it, what an
agent with eight slots costs.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import dispatchers, idle
from bench.pool import sleeping_project, wait_for_results
from bench.row import Row, no_value
from boxcar.laptop.verbs import launch
from boxcar.shared.environment import clean_environment
from boxcar.shared.files import heartbeat

CELLS, SHORTEST_S, LONGEST_S, SLOTS = 64, 0.5, 20.0, 2
MOST_RATIO = 1.03
MANY_SLOTS, LIMIT_MB, LIMIT_PERCENT = 8, 48, 0.2
WAYS = (dispatchers.PARALLEL, dispatchers.HYPERQUEUE)


def measure(folder: Path) -> list[Row]:
    dice = random.Random(52)
    takes_s = [round(dice.uniform(SHORTEST_S, LONGEST_S), 1) for _ in range(CELLS)]
    script = folder / "ours" / "cell.py"
    script.parent.mkdir()
    peers, missing = dispatchers.found()
    with ThreadPoolExecutor() as beside:
        ours = beside.submit(_ours, script.parent, takes_s)
        while not script.exists():
            time.sleep(0.1)
        ways = {name: way for name, way in _PEERS.items() if name in peers}
        found = {
            name: beside.submit(_makespan_of, way, script, folder / name, takes_s)
            for name, way in ways.items()
        }
        took_s, took = ours.result(), {name: one.result() for name, one in found.items()}
    what = f"{CELLS} sleeping cells on {SLOTS} slots"
    took["list scheduling"] = makespan_s(takes_s, SLOTS)
    rows = [Row(what, took_s, "s", s, name, most_ratio=MOST_RATIO) for name, s in took.items()]
    rows += [no_value(f"{what}, {name}", "not installed") for name in missing if name in WAYS]
    return [*rows, *_agent_rows(folder)]


def makespan_s(takes_s: Sequence[float], slots: int) -> float:
    """When the last line ends, where each slot takes the next one as it is free."""
    free = [0.0] * slots
    for cell_s in takes_s:
        heapq.heappush(free, heapq.heappop(free) + cell_s)
    return max(free)


def _ours(folder: Path, takes_s: Sequence[float]) -> float:
    job = {"name": "bench-slots", "queues": {"all.txt": "box"}, "slots": SLOTS}
    project = sleeping_project(folder, takes_s, job)
    launch.launch(project, environ={})
    results = wait_for_results(project)
    return float(max(one["ended"] for one in results) - min(one["began"] for one in results))


_Peer = Callable[[Sequence[str], Sequence[tuple[Path, float]]], None]


def _makespan_of(way: _Peer, script: Path, folder: Path, takes_s: Sequence[float]) -> float:
    outs = [folder / f"c{at:02d}" for at in range(len(takes_s))]
    for out in outs:
        out.mkdir(parents=True)
    way(dispatchers.python(script), list(zip(outs, takes_s, strict=True)))
    found = [json.loads((out / "m.json").read_text()) for out in outs]
    return float(max(one["ended"] for one in found) - min(one["began"] for one in found))


def _by_parallel(words: Sequence[str], cells: Sequence[tuple[Path, float]]) -> None:
    with tempfile.TemporaryFile("w+") as lines:
        lines.writelines(f"{out}\t{cell_s}\n" for out, cell_s in cells)
        lines.seek(0)
        command = ["parallel", "--will-cite", f"-j{SLOTS}", "--colsep", "\t"]
        command += [*words, "{1}", "--for", "{2}"]
        subprocess.run(command, stdin=lines, check=True, env=clean_environment(os.environ))


def _by_hyperqueue(words: Sequence[str], cells: Sequence[tuple[Path, float]]) -> None:
    """In a process of its own: its cluster lives in its user's."""
    call = json.dumps([list(words), [[str(out), cell_s] for out, cell_s in cells]])
    command = [sys.executable, "-c", "from bench import slots; slots.be_hyperqueue()"]
    subprocess.run(command, input=call, text=True, check=True, stdout=subprocess.DEVNULL)


def be_hyperqueue() -> None:
    from hyperqueue import Job
    from hyperqueue.cluster import LocalCluster, WorkerConfig

    words, cells = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        cluster = LocalCluster(folder, WorkerConfig(cores=SLOTS))
        job = Job()
        for out, cell_s in cells:
            job.program([*words, out, "--for", str(cell_s)], stdout=None, stderr=None)
        client = cluster.client()
        client.wait_for_jobs([client.submit(job)])
        cluster.stop()


_PEERS: dict[str, _Peer] = {
    dispatchers.PARALLEL: _by_parallel,
    dispatchers.HYPERQUEUE: _by_hyperqueue,
}


def _agent_rows(folder: Path) -> list[Row]:
    """While its slots are all taken by cells that sleep."""
    there = folder / "many"
    there.mkdir()
    job = {"name": "bench-many", "queues": {"all.txt": "box"}, "slots": MANY_SLOTS}
    project = sleeping_project(there, [60.0] * MANY_SLOTS, job)
    launch.launch(project, environ={})
    pid = 0
    while not pid:
        beat = heartbeat.read_heartbeat(project.on_tier.heartbeat("all"))
        pid = beat.pid if beat and len(beat.cells) == MANY_SLOTS else 0
        time.sleep(0.5)
    time.sleep(5)  # the last start is over
    percent, highest_mb = idle.cpu_percent(pid, 20), idle.highest_mb(pid)
    os.kill(pid, signal.SIGTERM)
    about = f"with {MANY_SLOTS} slots taken"
    return [
        Row(f"agent's memory {about}", highest_mb, "MB", LIMIT_MB, "limit", most_ratio=1),
        Row(f"agent's CPU {about}", percent, "% of a core", LIMIT_PERCENT, "limit", most_ratio=1),
    ]
