"""Settling results beside the next cell: one thread that publishes, verifies and prunes.

So the GPU does not wait for a copy. A disk that is full or away is given some time; what cannot be
settled then stops the queue, and the result stays on scratch for the next agent.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from boxcar.formats import attempt, manifest, state
from boxcar.formats.errors import BoxcarError, DamagedError
from boxcar.formats.manifest import Manifest
from boxcar.formats.queue_line import CellLine
from onbox import settle
from onbox.reporter import Reporter
from onbox.settle import Place

WAITS_S = (2.0, 10.0, 60.0)


class Settler:
    def __init__(self, place: Place, reporter: Reporter) -> None:
        self._place = place
        self._reporter = reporter
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="settle")
        self._pending: list[Future[None]] = []
        self._hurry = threading.Event()

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def hand_over(self, cell: CellLine, number: int) -> None:
        """Settle this attempt's result as soon as those before it are settled."""
        self._pending.append(self._executor.submit(self._settle, cell, number))

    def failures(self) -> list[BaseException]:
        """What could not be settled since the last call."""
        ended = [future for future in self._pending if future.done()]
        self._pending = [future for future in self._pending if future not in ended]
        return [error for future in ended if (error := future.exception())]

    def close(self) -> None:
        """Finish what was handed over, without waiting for a disk to come back."""
        self._hurry.set()
        self._executor.shutdown(wait=True)

    def _settle(self, cell: CellLine, number: int) -> None:
        for wait_s in WAITS_S:
            try:
                return self._settle_once(cell, number)
            except (BoxcarError, OSError) as error:
                text = f"{cell.name} could not be settled: {error}; trying again"
                self._reporter.warn("sync_failed", text, cell.name)
                self._hurry.wait(wait_s)
        return self._settle_once(cell, number)

    def _settle_once(self, cell: CellLine, number: int) -> None:
        published = self._publish(cell, number)
        told = {
            "cell": cell.name,
            "attempt": published.attempt,
            "manifest_sha256": manifest.sha256(self._place.durable.manifest(cell.name)),
        }
        if not isinstance(self._reporter.state().cell(cell.name).state, state.Synced):
            size_bytes, files = published.size_bytes, len(published.files)
            self._reporter.say("cell.synced", **told, size_bytes=size_bytes, files=files)
        receipt = settle.verify(self._place, published)
        if receipt.is_good:
            self._reporter.say("cell.verified", **told, metrics=settle.numbers(receipt))
            settle.prune(self._place, cell.name)
        else:
            self._say_bad(cell, published, settle.problems(receipt))

    def _publish(self, cell: CellLine, number: int) -> Manifest:
        place, name = self._place, cell.name
        done = attempt.read_done(place.scratch.done(name, number))
        if done is not None:
            published = settle.publish(place, cell, done)
        elif place.durable.manifest(name).exists():
            published = manifest.read(place.durable.manifest(name))
        else:
            raise DamagedError(
                f"{place.scratch.done(name, number)}: the record of {name}'s attempt is gone, and "
                "nothing of it is published; launch the queue again to run the cell again"
            )
        if published.attempt != number:
            text = f"{name}: attempt {published.attempt} is published; {number} is kept on scratch"
            self._reporter.warn("second_result", text, name)
        return published

    def _say_bad(self, cell: CellLine, published: Manifest, problems: str) -> None:
        self._reporter.say(
            "cell.failed",
            cell=cell.name,
            attempt=published.attempt,
            failure="BAD-ART",
            reason=f"its artifacts do not hold up: {problems}",
            release=self._place.release.name,
            seconds=0.0,
        )
