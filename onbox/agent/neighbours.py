"""What cells that run side by side do to one another: one computes on another's GPU, though it was
shown its own; or the box kills for memory, and nobody but all of them together took too much.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from boxcar.shared import state
from boxcar.shared.files.attempt import Done
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.sentence import Sentence, _
from onbox.machine import gpus, process
from onbox.queue.reporter import Reporter

CELL, RUN = "BOXCAR_CELL", "BOXCAR_RUN"
LOOK_EVERY_S = 60.0
_GIB = 2**30

Asked = Callable[[], list[tuple[str, int]]]


class GpuUsers:
    """Follows which cells' processes compute on which GPUs. The driver's program is asked once a
    minute beside the loop, which never waits for it: a broken driver may hang whoever asks.
    """

    def __init__(
        self, run: str, rows: Sequence[Mapping[str, Any]], ask: Asked | None = None
    ) -> None:
        self._run, self._ask = run, ask or gpus.users
        self._numbers = {str(row["uuid"]): str(at) for at, row in enumerate(rows) if "uuid" in row}
        self._asking: threading.Thread | None = None
        self._used: dict[str, set[str]] = {}
        self._next_at = 0.0

    @property
    def is_due(self) -> bool:
        return self._asking is not None or time.monotonic() >= self._next_at

    def look(self, own: Mapping[str, tuple[str, ...]]) -> list[tuple[str, Sentence]]:
        """A cell and a sentence for each that computes on a GPU that is not in `own`: cell -> the
        GPUs that it has for itself, as numbers. Slices of a card are not told apart, so they are
        left out.
        """
        if self._asking is None:
            if self._numbers and own and self.is_due:
                self._next_at = time.monotonic() + LOOK_EVERY_S
                # A daemon: an agent that ends waits for no driver.
                self._asking = threading.Thread(target=self._look_at_driver, daemon=True)
                self._asking.start()
            return []
        if self._asking.is_alive():
            return []
        self._asking = None
        return say_trespasses(own, self._used)

    def _look_at_driver(self) -> None:
        """The numbers of the GPUs that each cell of this run computes on."""
        found: dict[str, set[str]] = {}
        for uuid, pid in self._ask():
            environ = process.environment(pid)
            if environ.get(RUN) == self._run and CELL in environ and uuid in self._numbers:
                found.setdefault(environ[CELL], set()).add(self._numbers[uuid])
        self._used = found


def say_trespasses(
    own: Mapping[str, tuple[str, ...]], used: Mapping[str, set[str]]
) -> list[tuple[str, Sentence]]:
    """Pure."""
    found = []
    for cell, gpus_of_cell in own.items():
        if not all(gpu.isdigit() for gpu in gpus_of_cell):
            continue
        taken = sorted(used.get(cell, set()) - set(gpus_of_cell), key=int)
        if not taken:
            continue
        whose = [other for other, theirs in own.items() if other != cell and {*theirs} & {*taken}]
        text = _(
            "{cell} computes on GPU {taken} too, though it has {own} for itself: its script sets "
            "CUDA_VISIBLE_DEVICES, or was started with another one. Remove that from the script",
            cell=cell,
            taken=", ".join(taken),
            own=", ".join(gpus_of_cell),
        )
        if whose:
            text = _("{text}. It slows down {cells}", text=text, cells=", ".join(whose))
        found.append((cell, text))
    return found


# --- killed for memory


def warn_of_memory_kill(
    reporter: Reporter, scratch: ScratchPaths, done: Done, names: Collection[str]
) -> None:
    """The box's counter does not say whose process it was: all that ran are named, with the most
    that one process of each has held. `done` is of the one that ended, `names` are all of them.
    """
    records = reporter.state().cells
    told = [(done.cell, done.peak_bytes)]
    for name in names:
        record = records.get(name)
        if name != done.cell and record and isinstance(record.state, state.Running):
            told.append((name, _peak_bytes(scratch, name, record.state.attempt)))
    reporter.warn("memory_kill", say_memory_kill(told), done.cell)


def say_memory_kill(told: Sequence[tuple[str, int | None]]) -> Sentence:
    """`told`: cells and their peaks in bytes, first the one that ended. Pure."""
    peaks = [
        _("{cell} {gib:.1f} GiB", cell=cell, gib=found / _GIB) if found else cell
        for cell, found in told
    ]
    return _(
        "the box killed a process for memory while {n} {n:cell|cells} ran side by side. The "
        "largest process of each held: {peaks}. If that goes on, write fewer slots: in job.yaml",
        n=len(told),
        peaks=", ".join(peaks),
    )


def _peak_bytes(scratch: ScratchPaths, cell: str, attempt: int) -> int | None:
    """The most that one process of an attempt has held until now."""
    pids = process.with_cookie(process.cookie(str(scratch.root), cell, attempt))
    return max(filter(None, map(_highest_bytes, pids)), default=None)


def _highest_bytes(pid: int) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
