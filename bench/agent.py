"""What the agent costs: memory, CPU while it waits, and seconds to a new line.

A real agent on a tiny project (plain Python, JSON artifacts). Its memory after many events is that
of a process that has opened such a journal as the agent does; after many cells: gap_growth.py.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import dispatchers, idle
from bench.row import Row
from bench.tiny_run import TinyRun
from boxcar.shared.files import journal_chain
from boxcar.shared.files.journal_chain import Event

CELLS = 10
APPENDS = 9
# Before each appended line, and after it.
REST_S = 0.5
LIMIT_MB = 45
_OPEN = """\
import sys
from pathlib import Path
import onbox.agent.agent
from boxcar.shared.files.journal import Journal
from onbox.queue.reporter import Remembered, Reporter
from onbox.queue.queue_file import QueueFile
remembered = Remembered()
reporter = Reporter(Journal(Path(sys.argv[1]), {}, take=remembered.take), None, remembered)
reporter.state()
QueueFile(Path(sys.argv[2])).look()
print(Path("/proc/self/status").read_text())
"""


def measure(folder: Path) -> list[Row]:
    with TinyRun(folder) as run:
        cells = [f"c{number}" for number in range(CELLS)]
        run.append(cells)
        run.wait_for(cells)
        cpu_percent = idle.cpu_percent(run.pid)
        rows = _append_rows(run, folder)
        highest_mb = idle.highest_mb(run.pid)
        peers = [*_peers(run.script, folder)]
    memory, waits = f"memory, highest, after {CELLS} cells", "CPU while it waits"
    return [
        Row(memory, highest_mb, "MB", LIMIT_MB, "limit", most_ratio=1),
        *(Row(memory, highest_mb, "MB", peer_mb, name) for name, peer_mb, _ in peers),
        _memory(folder, "100,000 events of 50 cells", 50, 2_000),
        Row(waits, cpu_percent, "% of a core", 0.5, "limit", most_ratio=1),
        *(Row(waits, cpu_percent, "% of a core", percent, name) for name, _, percent in peers),
        *rows,
    ]


def _peers(script: Path, folder: Path) -> Iterator[tuple[str, float, float]]:
    """The name of each, its memory in MB and its CPU while it waits, in percent of a core."""
    found, _ = dispatchers.found()
    for name in (dispatchers.TSP, dispatchers.HYPERQUEUE):
        if name in found:
            yield name, *idle.of_peer(name, script, folder / f"idle {name}", CELLS)


def _append_rows(run: TinyRun, folder: Path) -> list[Row]:
    """In turns, and each after the same rest: whoever has just run starts sooner."""
    found, _ = dispatchers.found()
    queues = {dispatchers.TSP: dispatchers.Spooler, dispatchers.HYPERQUEUE: dispatchers.HyperQueue}
    ours_s: list[float] = []
    theirs_s: dict[str, list[float]] = {name: [] for name in queues if name in found}
    with contextlib.ExitStack() as stack:
        open_ = {name: stack.enter_context(queues[name]()) for name in theirs_s}
        for turn in range(APPENDS):
            ours_s.append(append_s(run, f"noticed{turn}"))
            for name, queue in open_.items():
                theirs_s[name].append(_peer_append_s(queue, run.script, folder / name / str(turn)))
    return [_append_row(ours_s, name, peers_s) for name, peers_s in theirs_s.items()]


def append_s(run: TinyRun, cell: str) -> float:
    """From an appended line to its cell's first line; nothing else is being done."""
    time.sleep(REST_S)
    appended_at = time.time()
    run.append([cell])
    time.sleep(REST_S)  # to look at a journal takes a core
    run.wait_for([cell])
    return float(run.result(cell)["began"]) - appended_at


def _peer_append_s(
    queue: dispatchers.Spooler | dispatchers.HyperQueue, script: Path, out: Path
) -> float:
    out.mkdir(parents=True)
    time.sleep(REST_S)
    typed_at = queue.add(dispatchers.python(script), out)
    time.sleep(REST_S)
    queue.wait()
    return float(json.loads((out / "m.json").read_text())["began"]) - typed_at


def _append_row(ours_s: Sequence[float], peer: str, theirs_s: Sequence[float]) -> Row:
    ours, theirs = statistics.median(ours_s), statistics.median(theirs_s)
    return Row(
        *("an appended line, until its cell's first line", ours, "s", theirs, peer),
        *(min(ours_s), min(theirs_s), 1.0),
    )


def _memory(folder: Path, what: str, cells: int, reports: int) -> Row:
    path = folder / f"{cells}.jsonl"
    path.write_bytes(b"".join(_lines(cells, reports)))
    queue = folder / f"{cells}.txt"
    queue.write_text("".join(f"c.json t name=cell_{number:05}\n" for number in range(cells)))
    words = [sys.executable, "-c", _OPEN, str(path), str(queue)]
    status = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    highest_mb = idle.highest_mb_in(status)
    what = f"memory, highest, after {what}"
    return Row(what, highest_mb, "MB", LIMIT_MB, "limit", most_ratio=1)


def _lines(cells: int, reports: int) -> Iterator[bytes]:
    """The journal of cells that were verified, with so many reports of progress each."""
    seq, before = 0, journal_chain.OF_NOTHING
    for number in range(cells):
        for type, more in _life(reports):
            seq += 1
            about = {"run": "bench", "queue": "queue", "box": "box-a", "cell": f"cell_{number:05}"}
            at, data = "2026-11-22T02:00:00.000Z", about | {"attempt": 1} | more
            line = Event(seq, f"evt_{seq:032x}", at, type, data).to_line(before)
            before = Event.check_of(line)
            yield line


def _life(reports: int) -> Iterator[tuple[str, dict[str, object]]]:
    made = {"manifest_sha256": "c" * 64}
    yield "cell.claimed", {}
    yield (
        "cell.started",
        {
            **{"cfg": "configs/c.yaml", "task": "recon", "epochs": 3, "nproc": 1},
            **{"release": "a" * 64, "saying": "b" * 64},
        },
    )
    for step in range(reports):
        yield "cell.progress", {"progress": {"step": step, "loss": 0.5}}
    yield "cell.succeeded", {"seconds": 1.0}
    yield "cell.synced", made | {"size_bytes": 1000, "files": 3}
    yield "cell.verified", made | {"metrics": {"loss": 0.5}}
