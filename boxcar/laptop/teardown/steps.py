"""An approved teardown as it lies beside the results: each step is written before it counts.

A `down` that goes on reads here what was done before it: on which boxes Boxcar's own part is done,
which were told to end themselves, and which were seen to have done so.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import Teardown


class Steps:
    """`path` is teardown.json, `now` what it holds. For several threads at once."""

    def __init__(self, path: Path, begun: Teardown) -> None:
        """Writes `begun` down."""
        self._path, self._lock, self.now = path, threading.Lock(), begun
        self._keep()

    def ended(self, box: str) -> None:
        """Nothing of the run will start there again, and its secrets are gone."""
        self._note("boxes", box)

    def told(self, box: str) -> None:
        """The platform's verb has begun on that box."""
        self._note("told", box)

    def untold(self, box: str) -> None:
        """It has begun there and refused."""
        with self._lock:
            told = {name: at for name, at in self.now.told.items() if name != box}
            self._keep(told=told)

    def off(self, box: str) -> None:
        """It was told, and has fallen silent."""
        self._note("off", box)

    def rotated(self, credential: str) -> None:
        """A person says that it was replaced where it was made."""
        self._note("rotated", credential)

    def finished(self) -> None:
        with self._lock:
            self._keep(finished_at=timestamp.utc_now())

    def _note(self, step: str, box: str) -> None:
        with self._lock:
            self._keep(**{step: getattr(self.now, step) | {box: timestamp.utc_now()}})

    def _keep(self, **done: Any) -> None:
        now = replace(self.now, **done)
        atomic.write_whole(self._path, codec.to_document(now))
        self.now = now
