"""The page of a run of 1,000 cells on 20 boxes, as it is served: its bytes, those of a refresh, and
how long a real Chromium takes until it shows something. The run is made in memory, with a curve of
three numbers for each cell at work.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from bench.row import Row, no_value
from boxcar.laptop.run.view import CellView, Condition, QueueView, RunView
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, history_after_look
from boxcar.laptop.view.page import cell_curves, server
from boxcar.laptop.view.page.cell_curves import Reports
from boxcar.laptop.view.page.live_page import Private, Reading, page_of_run
from boxcar.laptop.view.page.page_state import PageState, pack
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.shared import state
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.state import CellRecord

CELLS, BOXES, LOOKS = 1000, 20, 200
MOST_PAGE_BYTES, MOST_REFRESH_BYTES, MOST_PAINT_S = 150_000, 10_000, 0.3
_TIMES, _LIMIT_S = 5, 60
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SHA256 = "ab" * 32
_PROBE = """<script>new PerformanceObserver((seen) => {
  for (const one of seen.getEntriesByName("first-contentful-paint"))
    fetch("?cell=" + one.startTime).then(() => location.reload());
}).observe({ type: "paint", buffered: true });</script></html>"""
_FIRST = PageState("<!doctype html><html><title>-</title><h1>-</h1>" + _PROBE, 1)


def measure(folder: Path) -> list[Row]:
    before, page = _states()
    refresh, what = page.since(before), f"page of {CELLS} cells"
    return [
        _bytes(what, page.whole, MOST_PAGE_BYTES),
        _bytes(f"{what}, a refresh", refresh, MOST_REFRESH_BYTES),
        _paint(f"{what}, first paint", page, folder),
    ]


def _bytes(what: str, data: bytes, most: int) -> Row:
    packed = len(pack(data))
    return Row(
        f"{what}, packed ({len(data) / 1000:.0f} kB as text)", packed, "bytes", most, "limit"
    )


def _states() -> tuple[PageState, PageState]:
    """The last two of half a night's looks."""
    reading, private = Reading(30.0, 120.0), Private()
    reports: Reports = {}
    history, made = NOTHING_SEEN, []
    for number in range(1, LOOKS + 1):
        view = _view(number)
        reports = cell_curves.reports_after_look(reports, view)
        history = history_after_look(history, view)
        if number > LOOKS - 2:
            rows = RunRows(view, Facts("autodl", "", "agents are running"), history)
            made.append(page_of_run(rows, reports, reading, private, number=number))
    return made[0], made[1]


def _view(look: int) -> RunView:
    at = f"2026-11-28T{look // 60:02d}:{look % 60:02d}:00.000Z"
    cells = [_cell(number, look) for number in range(CELLS)]
    queues = (_queue(cell, look, at) for cell in cells[:BOXES])
    return RunView("bench", at, tuple(queues), tuple(cells))


def _cell(number: int, look: int) -> CellView:
    """Of each box the first one runs; a third is done, every seventh failed, the rest waits."""
    box, index = number % BOXES, number // BOXES
    name = f"recon_no_skip_connection_lr{number}"
    cell = CellView(name, f"queue_{box}", f"box-{box}", "c.yaml", "recon", 40, index)
    if number < BOXES:
        now: state.CellState = state.Running(1, "2026-11-28T00:00:00.000Z")
        record = CellRecord(now, 1, 60.0 * look)
        return replace(cell, record=record, seconds=60.0 * look, progress=_numbers(number, look))
    if number % 7 == 1:
        now = state.Failed(1, "", "M2", f"out of memory at {number}", _SHA256, is_final=False)
        return replace(cell, record=CellRecord(now, 1, 9.0))
    if number % 3 == 0:
        now = state.Verified(1, f"2026-11-27T00:{number % 60:02d}:00.000Z", _SHA256)
        done = {"val_loss": 0.1 + number / CELLS, "val_acc": 0.9}
        return replace(cell, record=CellRecord(now, 1, 99.0), seconds=99.0 + number, metrics=done)
    return replace(cell, record=state.NOTHING_YET)


def _numbers(number: int, look: int) -> dict[str, float]:
    loss = 2 / (1 + look / 30) + 0.01 * number + 0.02 * math.sin(look * (number + 1))
    return {"step": look * 100, "epoch": look // 10, "train_loss": loss, "val_loss": 1.1 * loss} | {
        "val_acc": 1 - loss / 3
    }


def _queue(cell: CellView, look: int, at: str) -> QueueView:
    gpu = {"utilization_percent": 90 + look * (1 + (cell.index or 0)) % 9}
    gpu |= {"memory_used_bytes": 71 << 30, "memory_total_bytes": 80 << 30}
    start = Heartbeat(cell.queue, cell.box, _SHA256, at, 7, "running", cell.name, 1)
    beat = replace(start, progress=dict(cell.progress), gauges={"gpus": [gpu]})
    running = state.State({cell.name: cell.record}) if cell.record else state.State({})
    condition = Condition("running", "works")
    return QueueView(
        cell.queue, cell.box, is_alive=True, heartbeat=beat, condition=condition, state=running
    )


def _paint(what: str, page: PageState, folder: Path) -> Row:
    """By the browser's own clock, from the request on, in a browser that runs already: the first
    page it shows is another one.
    """
    program = next((found for name in _CHROMIUMS if (found := shutil.which(name))), None)
    if program is None:
        return no_value(what, "no Chromium on this machine")
    text = page.text.replace("script-src 'sha256", "script-src 'unsafe-inline' 'x-sha256")
    probed = PageState(text.removesuffix("</html>") + _PROBE, 2)
    times_s: list[float] = []
    is_over = threading.Event()

    def note(milliseconds: str) -> str:
        times_s.append(float(milliseconds) / 1000)
        served.states.append(probed)
        if len(times_s) > _TIMES:
            is_over.set()
        return ""

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with server.serve(0) as served, tempfile.TemporaryDirectory(dir=folder) as profile:
        served.states.append(_FIRST)
        served.opened = note
        words = [program, "--headless", *sandbox, f"--user-data-dir={profile}"]
        words += ["--remote-debugging-port=0", "--no-first-run", served.url]
        browser = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            is_over.wait(_LIMIT_S)
        finally:
            browser.terminate()
            browser.wait()
    each_s = times_s[1:]
    return Row(what, statistics.median(each_s), "s", MOST_PAINT_S, "limit", min(each_s))
