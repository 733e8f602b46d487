"""Two minutes of `watch` over a line of 200 ms beside `ssh tail -f`: bytes both ways.

The box and the line are those of `thin_line`. The script prints a line a second, as a trainer does.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.row import Row, no_value
from bench.thin_line import SSH, counted, import_tests, line

LONG_S, STEPS = 120.0, 600
_BOX = "box-a"
_PRINTS = """        step += 1
        print(f"epoch 3 step {step} loss {1 / step:.6f} lr 3.0e-04 eta 0:12:34", flush=True)
"""


def measure(folder: Path) -> list[Row]:
    import_tests()
    from hosts import NotPermitted

    try:
        return _rows(folder)
    except NotPermitted as reason:
        return [no_value("watch over a thin line", f"no box of one's own here: {reason}")]


def _rows(folder: Path) -> list[Row]:
    from hosts import boxes
    from rented import rent

    with boxes(folder / "hosts", [_BOX]) as hosts:
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{hosts.bin}{os.pathsep}{path}"
        try:
            queues = {"queue_1": [f"configs/1.json recon {STEPS}"]}
            project = rent(hosts, folder / "project", queues, plain=[_BOX])
            train = project.root / "train.py"
            train.write_text(train.read_text().replace("        step += 1\n", _PRINTS))
            (project.root / "configs" / "1.json").write_text(json.dumps({"seconds": 1, "x": 3}))
            project.launch().ended(0)
            with line(hosts, folder / "counts"):
                return _looked(project, folder / "counts")
        finally:
            os.environ["PATH"] = path


def _looked(project: Any, counts: Path) -> list[Row]:
    log = next(project.box(_BOX).glob("cells/*/*.log"))
    there = "/" + str(log).partition("/root/")[2]
    tail = bytes_of(counts, lambda: subprocess.Popen([*SSH, _BOX, "tail", "-f", there]))
    board = bytes_of(counts, lambda: project.start("watch"))
    looks = bytes_of(counts, lambda: project.start("watch", "--every", "2s"))
    cell = log.parent.name
    logs = bytes_of(counts, lambda: project.start("logs", cell, "--follow"))
    name = "ssh tail -f"
    what = f"for {LONG_S:.0f} s, both ways"
    return [
        Row(f"watch {what}", board / 1e3, "kB", tail / 1e3, name, most_ratio=3.0),
        Row(f"watch --every 2s {what}", looks / 1e3, "kB", tail / 1e3, name),
        Row(f"logs --follow {what}", logs / 1e3, "kB", tail / 1e3, name),
    ]


def bytes_of(counts: Path, start: Callable[[], subprocess.Popen[Any]]) -> int:
    """What went over the line both ways until it was ended as a person does."""
    before = counted(counts)
    process = start()
    time.sleep(LONG_S)
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    process.wait()
    after = counted(counts)
    return sum(after[:2]) - sum(before[:2])
