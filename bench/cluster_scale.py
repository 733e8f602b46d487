"""A cluster's run of up to 1,000 queues and 100,000 cells: what breaks first.

Synthesised: real files of a run that is done, as its agents would leave it, and squeue's own lines.
No agent and no Slurm runs. docs/scale.md has what it said and what follows from it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bench.row import Row

_TESTS = Path(__file__).resolve().parents[1] / "tests" / "laptop"
# Queues, and cells of each.
SIZES: tuple[tuple[int, int], ...] = ((10, 100), (100, 100))
LONG_SIZES = (*SIZES, (1000, 100))
T = TypeVar("T")


def measure(folder: Path) -> list[Row]:
    sys.path[:0] = [str(_TESTS), str(_TESTS.parent)]
    rows = []
    for queues, cells in SIZES:
        one = folder / f"run-{queues}"
        rows += _of_run(one, queues, cells)
        shutil.rmtree(one)
    return rows


def _of_run(folder: Path, queues: int, cells: int) -> Iterator[Row]:
    from boxcar.laptop.run.look import look_at_run
    from boxcar.shared import timestamp
    from boxcar.shared.wire import run_asks
    from boxcar.shared.wire.question import RunOnBox
    from onbox.answers import report

    name = f"{queues} queues, {queues * cells} cells: "
    run, made_s = _timed(lambda: _make(folder, queues, cells))
    yield Row(f"{name}files made", made_s, "s")
    tier = run.project.on_tier
    journals = sum(path.stat().st_size for path in tier.journals.iterdir())
    yield Row(f"{name}journals", journals / 1e6, "MB")
    plan = run.project.plan
    asked = RunOnBox(plan.run, plan.durable_dir, plan.boxes[0].data_dir)
    question = run_asks.Report(tuple(plan.queues), everything=True, have={})
    _, report_s = _timed(lambda: report.answer(question, asked))
    yield Row(f"{name}first answer of the login node", report_s, "s")
    view, look_s = _timed(lambda: look_at_run(run.site, timestamp.utc_now()))
    yield Row(f"{name}a look at all", look_s, "s")
    yield Row(f"{name}cells in it", float(len(view.cells)), "cells")
    yield from _of_slurm(name, tier, queues)


def _of_slurm(name: str, tier: Any, queues: int) -> Iterator[Row]:
    from boxcar.shared.slurm import job_comment
    from boxcar.shared.slurm.job_comment import Comment
    from onbox.slurm import squeue

    comment = Comment(tier.run, job_comment.tier_id(str(tier.root)), "a" * 64, "b" * 16)
    lines = [f"7|{at}|7_{at}|RUNNING|N/A|n1|None|{comment}" for at in range(queues)]
    text = "\n".join(lines)
    _, parse_s = _timed(lambda: list(squeue.parse(text, tier)))
    yield Row(f"{name}squeue's lines read", parse_s, "s")
    yield Row(f"{name}squeue's answer", len(text) / 1e6, "MB")
    indices = ",".join(map(str, range(queues)))
    yield Row(
        f"{name}indices in sbatch's words", len(indices) / 1e3, "kB", 131.0, "one word's limit"
    )


def _make(folder: Path, queues: int, cells: int) -> Any:
    import run_on_disk

    lines = {
        f"queue_{at}": [f"configs/c{at}-{cell}.yaml recon 3" for cell in range(cells)]
        for at in range(queues)
    }
    run_on_disk.ascii_lowercase = [f"q{at}" for at in range(queues)]
    run = run_on_disk.make_run(folder, lines)
    for queue, texts in lines.items():
        names = [Path(text.split()[0]).stem for text in texts]
        _write(run, queue, list(_events(run_on_disk, names)))
    return run


def _events(made: Any, names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield made.agent_started()
    for name in names:
        yield made.cell_started(name)
        yield made.cell_progress(name, 3)
        yield "cell.succeeded", {"cell": name, "attempt": 1, "seconds": 5.0}
        yield made.cell_verified(name)
    yield made.queue_done()


def _write(run: Any, queue: str, events: list[tuple[str, dict[str, Any]]]) -> None:
    """As a journal is written, without the fsync of each event."""
    from boxcar.shared import timestamp
    from boxcar.shared.files import journal_chain
    from boxcar.shared.files.journal_chain import Event

    common = {"run": "demo", "queue": queue, "box": run.project.plan.queues[queue]}
    before, lines, at = journal_chain.OF_NOTHING, [], timestamp.utc_now()
    for seq, (type_, data) in enumerate(events, 1):
        line = Event(seq, f"evt_{seq}", at, type_, common | data).to_line(before)
        before = Event.check_of(line)
        lines.append(line)
    run.site.tier.journal(queue).write_bytes(b"".join(lines))


def _timed(act: Callable[[], T]) -> tuple[T, float]:
    started = time.monotonic()
    result = act()
    return result, time.monotonic() - started
