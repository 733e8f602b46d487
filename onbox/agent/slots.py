"""The places for attempts side by side on this box: a code stage each, and GPUs where the job gives
each cell its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from typing import Protocol

from boxcar.shared.cell import terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.visible_gpus import VISIBLE
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import Gpu, TrainedOn
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _
from onbox.agent.neighbours import GpuUsers
from onbox.machine import devices, gauges, gpus
from onbox.machine.devices import ORDER, Devices
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter

THREADS = "OMP_NUM_THREADS"
# So long GPUs may be somebody else's before a person hears of it.
TOLD_AFTER_S = 600.0


@dataclass(frozen=True)
class Slot:
    """`gpus` as CUDA_VISIBLE_DEVICES spells them; none: all of the box, whoever else has them."""

    number: int = 0
    gpus: tuple[str, ...] = ()


class InSlot(Protocol):
    @property
    def slot(self) -> Slot: ...


class Slots:
    def __init__(self, place: Place, reporter: Reporter) -> None:
        self._plan, self._reporter = place.plan, reporter
        self._rows = gpus.ask_child()
        environ = {**os.environ, **self._plan.env, **self._plan.job_env}
        self._pool = devices.gpus_to_give_out(environ, self._rows)
        self._devices: Devices | None = None
        if self._plan.gpus_per_cell:
            folder, free_below_bytes = place.scratch.gpu_locks, self._plan.gpu_free_below_bytes
            self._devices = Devices(folder, free_below_bytes, self._pool)
        self.most = self._plan.slots or (max(1, len(self._pool)) if self._devices else 1)
        self._held: dict[Slot, Collection[int]] = {}
        self._in_vain_since: float | None = None
        self._users = GpuUsers(self._plan.run, self._rows) if self._devices else None

    def name_trespassers(self, under_way: Mapping[str, InSlot]) -> None:
        """Of the cells under way: who computes on a GPU that it was not given."""
        if self._users and self._users.is_due:
            own = {cell: one.slot.gpus for cell, one in under_way.items() if one.slot.gpus}
            for cell, text in self._users.look(own):
                self._reporter.warn_once("gpu_of_another", text, cell)

    def take_slot(self, cell: CellLine, taken: Collection[Slot]) -> Slot | None:
        """A place for the cell beside those that are taken; None while it has to wait."""
        number = next(n for n in range(len(taken) + 1) if all(slot.number != n for slot in taken))
        wanted = self.wanted(cell)
        if not self._devices or wanted > len(self._pool):
            return Slot(number)
        held = self._devices.take_gpus(wanted, {gpu for slot in taken for gpu in slot.gpus})
        self._tell_of_others(cell, has_got=held is not None)
        if held is None:
            return None
        slot = Slot(number, tuple(held))
        self._held[slot] = held.values()
        return slot

    def give_back(self, slot: Slot) -> None:
        devices.give_back(self._held.pop(slot, ()))

    def locks(self, slot: Slot) -> tuple[int, ...]:
        """What an attempt there inherits."""
        return tuple(self._held.get(slot, ()))

    def problem(self, cell: CellLine) -> Sentence | None:
        wanted = self.wanted(cell)
        if not self._devices or wanted <= len(self._pool):
            return None
        return _(
            "{cell} needs {n} {n:GPU|GPUs}, and this box has {all}: give it fewer, or move it to "
            "another queue",
            cell=cell.name,
            n=wanted,
            all=len(self._pool),
        )

    def env(self, slot: Slot, env: dict[str, str]) -> dict[str, str]:
        """The variables of an attempt there, over `env`, which is the job's."""
        made = dict(env)
        if slot.gpus:
            made |= {VISIBLE: ",".join(slot.gpus), ORDER[0]: ORDER[1]}
        if self.most > 1 and THREADS not in env and THREADS not in os.environ:
            cores = gauges.cpu_quota_cores() or len(os.sched_getaffinity(0))
            made[THREADS] = str(max(1, int(cores / self.most)))
        return made

    def share(self, slot: Slot) -> float:
        """Which part of the box it is."""
        if slot.gpus and self._pool:
            return round(len(slot.gpus) / len(self._pool), 4)
        return round(1 / self.most, 4)

    def trained_on(self, started: Event | None) -> TrainedOn:
        """What an attempt had that was started so on this box."""
        said = started.data if started else {}
        rows = [devices.row_of(gpu, self._rows) for gpu in said.get("gpus", self._pool)]
        return TrainedOn(
            tuple(Gpu(row["name"], row.get("uuid", "")) for row in rows if "name" in row),
            next((row["driver"] for row in rows if "driver" in row), ""),
            said.get("nproc"),
            said.get("beside", 0),
            said.get("share", 1.0),
        )

    def wanted(self, cell: CellLine) -> int:
        """How many GPUs it has for itself."""
        return terms.terms_of_cell(self._plan, cell.name, cell.own).gpus or 0

    def _tell_of_others(self, cell: CellLine, *, has_got: bool) -> None:
        in_use = self._devices.in_use if self._devices and not has_got else ()
        if not in_use:
            self._in_vain_since = None
            return
        now = time.monotonic()
        self._in_vain_since = self._in_vain_since or now
        if now - self._in_vain_since >= TOLD_AFTER_S:
            text = _(
                "{cell} waits: {n:GPU|GPUs} {gpus} {n:is|are} in use, but not by this run. See who "
                "by nvidia-smi; on a box that others use too, gpu_free_below: in job.yaml says "
                "how much they may hold",
                cell=cell.name,
                n=len(in_use),
                gpus=", ".join(in_use),
            )
            self._reporter.warn_once("gpu_in_use", text, cell.name)


def slot_of_start(started: Event | None) -> Slot:
    """Where an attempt was started by an earlier agent, which gave it GPUs for itself or not."""
    said = started.data if started else {}
    return Slot(said.get("slot", 0), tuple(said.get("gpus", ())))
