"""Views of runs of any size, made in memory, for the tests of the board."""

from __future__ import annotations

from dataclasses import replace

from run_on_disk import RELEASE, SHA256, from_now

from boxcar.laptop.run.view import CellView, Condition, QueueView, RunView
from boxcar.laptop.view.board.terminal_lines import Line
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, History, history_after_look
from boxcar.laptop.view.needs import Quiet
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.shared import state
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.state import CellRecord

NEXT = "boxcar explain --cell seg_explode"
FACTS = Facts(
    profile="autodl",
    next=NEXT,
    because="1 cell failed",
    see_all="boxcar status --all",
    metrics=("psnr_db",),
    quiet=Quiet(("webhooks: off (BOXCAR_WEBHOOK_URL not set)",)),
)


def view(cells: int, boxes: int) -> RunView:
    """Of each box a cell that runs; a third is done, every seventh cell failed, the rest waits."""
    names = [f"queue_{n}" for n in range(boxes)]
    made = [_cell(at, names[at % boxes], at % boxes) for at in range(cells)]
    busy = {cell.queue: cell.name for cell in reversed(made) if cell.word == "running"}
    queues = [_queue(name, at, busy.get(name)) for at, name in enumerate(names)]
    return RunView("big", from_now(0), tuple(queues), tuple(made))


def shot(
    cells: int, boxes: int, *, facts: Facts = FACTS, history: History | None = None
) -> RunRows:
    made = view(cells, boxes)
    return RunRows(made, facts, history or history_after_look(NOTHING_SEEN, made))


def at(seconds: float, percents: tuple[object, ...], phase: str = "running") -> RunView:
    """A look at that moment, with a heartbeat of a second before."""
    made = view(3, 1)
    [queue] = made.queues
    assert queue.heartbeat
    gauges = {"gpus": [{"utilization_percent": percent} for percent in percents]}
    beat = replace(queue.heartbeat, at=from_now(seconds - 1), gauges=gauges, phase=phase)
    return replace(made, at=from_now(seconds), queues=(replace(queue, heartbeat=beat),))


def watched(minutes: int, *percents: object, phase: str = "running") -> History:
    history = NOTHING_SEEN
    for minute in range(minutes):
        history = history_after_look(history, at(60.0 * minute, percents, phase))
    return history


def _cell(at: int, queue: str, box: int) -> CellView:
    name = f"recon_no_skip_connection_q{box}_seed{at}"
    cell = CellView(name, queue, f"box-{box}", "c.yaml", "recon", 20, at)
    if at % 7 == 1:
        why = "CUDA out of memory. Tried to allocate 2.00 GiB"
        now: state.CellState = state.Failed(1, from_now(-at), "M2", why, RELEASE, is_final=False)
        return replace(cell, record=CellRecord(now, 1, 9.0), progress={"epoch": 2, "step": 9})
    if at % 3 == 0 and at:
        done = state.Verified(1, from_now(-at), SHA256)
        record = CellRecord(done, 1, 31.0 + at)
        return replace(cell, record=record, seconds=31.0 + at, metrics={"psnr_db": 23.4567})
    if at < 2 * 20 and at % 7 in (0, 2):
        busy = CellRecord(state.Running(1, from_now(-60)), 1, 60.0)
        numbers = {"epoch": 3, "step": 40, "train_loss": 0.3333, "psnr_db": 20.91}
        return replace(cell, record=busy, seconds=60.0, progress=numbers)
    return replace(cell, record=state.NOTHING_YET)


def _queue(name: str, at: int, cell: str | None) -> QueueView:
    gauges = {
        "gpus": [
            {
                "utilization_percent": 93,
                "memory_used_bytes": 71 << 30,
                "memory_total_bytes": 80 << 30,
            }
        ]
    }
    beat = Heartbeat(name, f"box-{at}", RELEASE, from_now(-1), 7, "running", cell, 1, {}, gauges)
    queue = QueueView(
        name, f"box-{at}", is_alive=True, heartbeat=beat, condition=Condition("running", "works")
    )
    if at % 5 == 2:
        gone = Condition("unreachable", "does not answer")
        return replace(queue, is_alive=None, silent="timed out", condition=gone)
    if cell is None:
        return replace(queue, condition=Condition("idle", "waiting for new lines"))
    running = state.State({cell: CellRecord(state.Running(1, from_now(-60)), 1)})
    return replace(queue, state=running)


def plain_lines(lines: list[Line]) -> list[str]:
    """Without looks and without blanks at the ends."""
    return [line.plain.rstrip() for line in lines]
