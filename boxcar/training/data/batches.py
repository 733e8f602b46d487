"""A key becomes a batch, in a worker or the main process, whose generators stay as they were."""

from __future__ import annotations

import contextlib
from typing import Any

from torch.utils.data import Dataset, get_worker_info

from boxcar.shared.errors import InputError
from boxcar.training.data import sample_seeds
from boxcar.training.data.sample_seeds import SeededSamples
from boxcar.training.data.stream import Ended, StreamReader
from boxcar.training.data.worker_transport import WorkerTransport


class Batches(Dataset[Any]):
    """What the workers hold."""

    def __init__(self, source: SeededSamples | StreamReader, transport: WorkerTransport) -> None:
        self.source, self.transport = source, transport
        self._has_read = False  # in this process, of samples that are not seeded

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_has_read": False}

    def __getitems__(self, key: Any) -> Any:
        if self.source.is_seeded:
            with contextlib.nullcontext() if get_worker_info() else sample_seeds.own_draws():
                return self._batch(key)
        if self._has_read:
            return self._batch(key)
        before = sample_seeds.generator_states()
        batch = self._batch(key)
        self._refuse_what_drew(before)
        self._has_read = True
        return batch

    def _batch(self, key: Any) -> Any:
        samples = self.source.read(key)
        return samples if isinstance(samples, Ended) else self.transport(samples)

    def _refuse_what_drew(self, before: dict[str, Any]) -> None:
        drawn = [
            name for name, state in sample_seeds.generator_states().items() if state != before[name]
        ]
        if drawn:
            raise InputError(
                f"{type(self.source.dataset).__name__} says draws_nothing, and reading it drew "
                f"from {', '.join(drawn)}: a resumed training would draw otherwise. Take "
                "draws_nothing out"
            )
