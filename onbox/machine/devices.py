"""GPUs that one attempt has for itself, each under a lock that all runs on this box share.

The lock is the attempt's: its wrapper inherits it, so that it outlives the agent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.cell import visible_gpus
from boxcar.shared.disk import atomic, lock
from onbox.machine import gpus

# Without it CUDA counts the fastest card first, and not as nvidia-smi does.
ORDER = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


class Devices:
    """`in_use`: at the last try in vain, the free ones whose memory somebody uses, or that another
    run holds.
    """

    def __init__(
        self,
        locks: Path,
        free_below_bytes: int,
        pool: Sequence[str],
        ask: Callable[[], list[dict[str, Any]]] = gpus.ask_child,
    ) -> None:
        self._locks, self._free_below_bytes = locks, free_below_bytes
        self._pool, self._ask = pool, ask
        self.in_use: tuple[str, ...] = ()

    def take_gpus(self, count: int, taken: Collection[str]) -> dict[str, int] | None:
        """So many that are free, each with the descriptor that holds its lock; None where there are
        fewer. Raises OSError.
        """
        left = [gpu for gpu in self._pool if gpu not in taken]
        self.in_use = ()
        if len(left) < count:
            return None
        atomic.make_folder(self._locks)
        rows, held, in_use = self._ask(), dict[str, int](), []
        for gpu in left:
            if len(held) == count:
                break
            fd = self._try_hold(gpu, rows)
            if fd is None:
                in_use.append(gpu)
            else:
                held[gpu] = fd
        self.in_use = tuple(in_use)
        if len(held) == count:
            return held
        give_back(held.values())
        return None

    def _try_hold(self, gpu: str, rows: Sequence[Mapping[str, Any]]) -> int | None:
        row = row_of(gpu, rows)
        if row.get("memory_used_bytes", 0) >= self._free_below_bytes:
            return None
        name = re.sub(r"[^\w-]", "-", str(row.get("uuid", gpu)))
        return lock.try_hold(self._locks / f"{name}.lock")


def give_back(fds: Collection[int]) -> None:
    """Of this process; an attempt that inherited them keeps them to its end."""
    for fd in fds:
        os.close(fd)


def gpus_to_give_out(
    environ: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """As CUDA_VISIBLE_DEVICES spells them: those that it shows, else what the driver names. Slices
    of a card only have UUIDs.
    """
    if (visible := visible_gpus.of_env(environ)) is not None:
        return visible
    found: list[str] = []
    for index, row in enumerate(rows):
        found += row.get("mig") or [str(index)]
    return tuple(found)


def row_of(gpu: str, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What the driver says of it; nothing of a slice, whose memory is not told."""
    if gpu.isdigit():
        return rows[int(gpu)] if int(gpu) < len(rows) else {}
    return next((row for row in rows if str(row.get("uuid", "")).startswith(gpu)), {})
