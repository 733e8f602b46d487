"""When a box that is through with its cells ends itself: the person's word, a proof, time. Pure.

Any doubt begins the time anew, also in the ten minutes between the notice and the end.
"""

from __future__ import annotations

import enum

NOTICE_S = 600.0
# Whoever looks less often than that was suspended: nobody knows what happened meanwhile.
LONGEST_GAP_S = 120.0


class Step(enum.Enum):
    NONE = "none"
    NOTICE = "notice"  # it is told that the box ends
    VOID = "void"  # it is told that it does not
    END = "end"


class IdleBox:
    """Follows the looks at one box. Times are of a clock that never goes back."""

    def __init__(self, after_s: float, notice_s: float = NOTICE_S) -> None:
        self._after_s, self._notice_s = after_s, notice_s
        self._idle_since_s: float | None = None
        self._noticed_s: float | None = None
        self._looked_s: float | None = None

    @property
    def is_noticed(self) -> bool:
        """Whether it was told that the box ends."""
        return self._noticed_s is not None

    def doubt(self) -> Step:
        """What a step was not done for begins the time anew."""
        was_noticed = self.is_noticed
        self._idle_since_s = self._noticed_s = None
        return Step.VOID if was_noticed else Step.NONE

    def look(self, now_s: float, *, is_idle: bool, is_told: bool = True) -> Step:
        """`is_idle`: no witness speaks against it; `is_told`: the notice has arrived where the
        person reads it.
        """
        gap_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        if not is_idle or gap_s > LONGEST_GAP_S:
            return self.doubt()
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        if now_s - self._idle_since_s < self._after_s:
            return Step.NONE
        if self._noticed_s is None:
            self._noticed_s = now_s
            return Step.NOTICE
        if not is_told:
            self._noticed_s = now_s  # the ten minutes are a reader's
        return Step.END if now_s - self._noticed_s >= self._notice_s else Step.NONE
