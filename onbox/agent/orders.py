"""What the agent is asked to do: by a person's control file, or by a signal from the system."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from boxcar.shared import timestamp
from boxcar.shared.files import control
from boxcar.shared.process import end_reason, exit_codes
from boxcar.shared.sentence import _

# The control file may lie on a slow network tier.
_LOOK_EVERY_S = 1.0


class Orders:
    """SIGTERM and SIGINT mean stop: the box may be going away."""

    def __init__(self, path: Path, wake: Callable[[], None]) -> None:
        self._path = path
        self._wake = wake
        self._wanted = control.RUN
        self._next_look_at = 0.0
        self._signal: int | None = None
        # When it came, in the seconds of time.monotonic().
        self.signalled_at: float | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def look_again(self) -> None:
        """Before a cell is chosen: what was asked a moment ago counts."""
        self._next_look_at = 0.0

    @property
    def is_to_end(self) -> bool:
        """Start no further cell."""
        return self._order() != control.RUN

    @property
    def is_to_stop(self) -> bool:
        """Nor finish the one that runs."""
        return self._order() == control.STOP

    @property
    def reason(self) -> str:
        if self._signal is not None:
            return _("told to end by {signal}", signal=signal.Signals(self._signal).name)
        if self._wanted == control.SPENT:
            return _("the budget is spent, as far as the last look from the laptop knew")
        return _("asked to {order}", order=self._wanted)

    @property
    def by(self) -> str:
        """Whose doing an end is that was ordered so, as the journal says it."""
        return self._wanted if self._signal is None else end_reason.SIGNAL

    @property
    def exit_code(self) -> int:
        """Of the agent that ended so: done as a person asked, or preempted and resumable."""
        return exit_codes.DONE if self._signal is None else exit_codes.PREEMPTED

    def _order(self) -> str:
        if self._signal is not None:
            return control.STOP
        if time.monotonic() >= self._next_look_at:
            asked = control.read_control(self._path)
            is_over = asked.begin_until is not None and asked.begin_until <= timestamp.utc_now()
            self._wanted = control.SPENT if asked.want == control.RUN and is_over else asked.want
            self._next_look_at = time.monotonic() + _LOOK_EVERY_S
        return self._wanted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self.signalled_at = self.signalled_at or time.monotonic()
        self._wake()
