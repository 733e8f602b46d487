"""A key becomes a batch, in a worker or the main process, and leaves the generators as they were.

**Only that is seeded from which something is drawn.** Nobody has to say which generators those are.
The first batch of each process is read with all of them seeded, and shows it; after each later one
the others tell whether that was all. Where it was not, they are put back and the batch is read once
more. So its values are the same, whatever its process has seen before.

Who asks for a generator's state (`torch.initial_seed()`, `torch.random.fork_rng()`) is taken for
one who draws from all: see asked_states.py.
"""

from __future__ import annotations

import contextlib
from typing import Any

from torch.utils.data import Dataset, get_worker_info

from boxcar.training.data import generators
from boxcar.training.data.asked_states import ASKED
from boxcar.training.data.draw_watch import States, Watch
from boxcar.training.data.generators import ALL
from boxcar.training.data.sample_seeds import SeededSamples
from boxcar.training.data.stream import Ended, StreamReader
from boxcar.training.data.worker_transport import WorkerTransport


class Batches(Dataset[Any]):
    """What the workers hold."""

    def __init__(self, source: SeededSamples | StreamReader, transport: WorkerTransport) -> None:
        self.source, self.transport = source, transport
        self._watch: Watch | None = None  # this process's
        self._drawn_from: frozenset[str] | None = None  # not known yet

    def __getstate__(self) -> dict[str, Any]:
        """Of another process, or another one of these: what this one has seen is not its own."""
        return {**self.__dict__, "_watch": None, "_drawn_from": None}

    def __getitems__(self, key: Any) -> Any:
        ASKED.begin()
        if isinstance(self.source, SeededSamples) and not ASKED.may_be_unseen:
            self._watch = self._watch or Watch()
            if before := self._watch.begin():
                return self._watched(self.source, key, self._watch, before)
        with contextlib.nullcontext() if get_worker_info() else generators.own_draws():
            return self._batch(self.source.read(key))

    def _watched(self, source: SeededSamples, key: Any, watch: Watch, before: States) -> Any:
        if self._drawn_from is None:
            return self._first(source, key, watch, before)
        while True:
            asked = ASKED.count
            try:
                batch = self._batch(source.read(key, self._drawn_from))
            except BaseException as error:
                # Perhaps it is one of what was drawn without a seed.
                is_other = self._has_met_another(watch, before, asked)
                if not is_other or not isinstance(error, Exception):
                    raise
            else:
                if not self._has_met_another(watch, before, asked):
                    return batch

    def _has_met_another(self, watch: Watch, before: States, asked: int) -> bool:
        """Whether it was drawn also from one that was not seeded. All are put back."""
        seeded = self._drawn_from or frozenset()
        has_asked = ASKED.count != asked
        self._drawn_from = ALL if has_asked else watch.now().moved(before) | seeded
        watch.put_back(before, self._drawn_from)
        return self._drawn_from != seeded

    def _first(self, source: SeededSamples, key: Any, watch: Watch, before: States) -> Any:
        asked = ASKED.count
        try:
            batch = self._batch(source.read(key))
            after = watch.now()
            source.seed_last(key)
            self._drawn_from = ALL if ASKED.count != asked else after.moved(watch.now())
            return batch
        finally:
            watch.put_back(before, ALL)

    def _batch(self, samples: Any) -> Any:
        return samples if isinstance(samples, Ended) else self.transport(samples)
