"""What the agent costs: memory, CPU while it waits, seconds between two cells, and to a new line.

A real agent on a tiny project (plain Python, JSON artifacts); the gap stands beside a bash
`while read` that runs the same script.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.row import Row
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.look import look
from boxcar.laptop.sites.local.local_site import LocalSite
from boxcar.laptop.verbs import launch, stop
from boxcar.shared import timestamp
from boxcar.shared.environment import clean_environment

CELLS = 12
CODE_FILES = 100
IDLE_S = 30.0
_SCRIPT = """\
import json, sys, time
began = time.time()
with open(sys.argv[1] + "/m.json", "w") as file:
    json.dump({"began": began, "ended": time.time()}, file)
"""
_JOB = """\
name: bench
code: code
command: cell.py {out}
launcher: python
nproc_per_node: 1
queues: {queue.txt: box-a}
artifacts: [m.json]
linger_s: 600
"""


def measure(folder: Path) -> list[Row]:
    project = _project(folder)
    launch.launch(project, environ={})
    try:
        _wait_for(project, CELLS)
        gap_s = _gap_s(project)
        pid = _pid(project)
        before, began = _cpu_s(pid), time.monotonic()
        time.sleep(IDLE_S)
        cpu_percent = 100 * (_cpu_s(pid) - before) / (time.monotonic() - began)
        notice_s = _notice_s(project, folder)
        rss_mb = _status_kb(pid, "VmHWM") / 1000
    finally:
        stop.stop(project, queues=None)
    return [
        Row("memory, highest", rss_mb, "MB", 40, "limit"),
        Row("CPU while it waits", cpu_percent, "% of a core", 0.5, "limit"),
        Row("a new line, until its cell starts", notice_s, "s", 2, "limit"),
        Row("between two cells, median", gap_s, "s", _bash_gap_s(folder), "bash while read"),
    ]


def _project(folder: Path) -> Project:
    for number in range(CODE_FILES):
        path = folder / f"code/lib{number % 10}/module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {number}\n" * 50)
    (folder / "code/cell.py").write_text(_SCRIPT)
    (folder / "job.yaml").write_text(_JOB)
    for number in range(CELLS + 1):
        (folder / f"code/c{number:02d}.json").write_text("{}")
    lines = [f"c{number:02d}.json t\n" for number in range(CELLS)]
    (folder / "queue.txt").write_text("".join(lines))
    return open_project(folder / "job.yaml", "local")


def _wait_for(project: Project, cells: int) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        looked = look(LocalSite.of(project, print), timestamp.utc_now())
        if sum(cell.word == "verified" for cell in looked.cells) >= cells:
            return
        time.sleep(0.1)
    raise TimeoutError(f"{cells} cells were not verified within 300 s")


def _gap_s(project: Project) -> float:
    """From the last line of one cell's script to the first of the next one's, median."""
    spans = []
    for number in range(CELLS):
        metrics = project.on_tier.cell(f"c{number:02d}") / "m.json"
        spans.append(json.loads(metrics.read_text()))
    return _median_gap_s(spans)


def _median_gap_s(spans: list[dict[str, float]]) -> float:
    gaps = [after["began"] - before["ended"] for before, after in itertools.pairwise(spans)]
    return statistics.median(gaps)


def _bash_gap_s(folder: Path) -> float:
    """The same script, started by what people have today."""
    loop = 'while read -r out; do "$1" "$2" "$out" </dev/null; done'
    outs = [folder / f"bash{number}" for number in range(CELLS)]
    for out in outs:
        out.mkdir()
    script = str(folder / "code/cell.py")
    subprocess.run(
        ["bash", "-c", loop, "bash", sys.executable, script],
        input="".join(f"{out}\n" for out in outs),
        text=True,
        check=True,
        env=clean_environment(os.environ),
    )
    return _median_gap_s([json.loads((out / "m.json").read_text()) for out in outs])


def _notice_s(project: Project, folder: Path) -> float:
    """From an appended line to its cell's first line."""
    appended_at = time.time()
    with project.on_tier.queue("queue").open("a") as file:
        file.write(f"c{CELLS:02d}.json t\n")
    _wait_for(project, CELLS + 1)
    metrics = json.loads((project.on_tier.cell(f"c{CELLS:02d}") / "m.json").read_text())
    return float(metrics["began"]) - appended_at


def _pid(project: Project) -> int:
    session = look(LocalSite.of(project, print), timestamp.utc_now()).queue("queue").session
    assert session
    return session.pid


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status_kb(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return float(line.split()[1])
    raise KeyError(name)
