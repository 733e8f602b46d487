"""What lead and followers have in common: their places, and who has not been heard of for long."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.environment import own_name
from boxcar.shared.record import dataclass

# NFS may show a folder as it was a minute ago.
LOST_S = 120.0
BEAT_EVERY_S = 2.0
LOOK_EVERY_S = 0.2


def meets(environ: Mapping[str, str], *, is_host: bool) -> dict[str, str]:
    """The environment of this pod's torchrun. It may guess wrongly who has the store, and under
    which of its names the others see it.
    """
    about = {"PET_RDZV_CONF": f"is_host={int(is_host)}", "PET_LOCAL_ADDR": own_name(environ)}
    return {**environ, **about}


@dataclass(frozen=True)
class Heard:
    """A beat, and when it was first heard by a monotonic clock of our own."""

    beat: int
    at: float

    def again(self, beat: int, now: float) -> Heard:
        return self if beat == self.beat else Heard(beat, now)

    def is_lost(self, now: float, lost_s: float = LOST_S) -> bool:
        return now - self.at > lost_s
