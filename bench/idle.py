"""What a process has taken in memory, and what it takes of a CPU while it waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench import dispatchers

IDLE_S = 3.0
_QUEUES = {dispatchers.TSP: dispatchers.Spooler, dispatchers.HYPERQUEUE: dispatchers.HyperQueue}


def highest_mb(pid: int) -> float:
    return highest_mb_in(Path(f"/proc/{pid}/status").read_text())


def highest_mb_in(status: str) -> float:
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1000
    raise KeyError("VmHWM")


def cpu_percent(pid: int, looks_s: float = IDLE_S) -> float:
    """Of a core, for some seconds from now on."""
    before, began = _cpu_s(pid), time.monotonic()
    time.sleep(looks_s)
    return 100 * (_cpu_s(pid) - before) / (time.monotonic() - began)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def of_peer(name: str, script: Path, folder: Path, cells: int) -> tuple[float, float]:
    """Both of another queue that has run so many cells. In a process of its own, because one of
    them lives in its user's.
    """
    words = [sys.executable, "-c", "from bench import idle; idle.be_a_peer()"]
    call = json.dumps([name, str(script), str(folder), cells])
    ended = subprocess.run([*words, call], check=True, stdout=subprocess.PIPE, text=True)
    found_mb, percent = json.loads(ended.stdout.splitlines()[-1])
    return found_mb, percent


def be_a_peer() -> None:
    name, script, folder, cells = json.loads(sys.argv[1])
    with _QUEUES[name]() as queue:
        for number in range(cells):
            out = Path(folder, str(number))
            out.mkdir(parents=True)
            queue.add(dispatchers.python(Path(script)), out)
        queue.wait()
        print(json.dumps([highest_mb(queue.pid), cpu_percent(queue.pid)]))
