"""Whether a box that was told to end itself has fallen silent, and not only the way to it.

A pulled cable is silent too. So a box counts as silent where its address refuses the connection (no
sshd there any more), or where nothing comes back while another box of the run is heard, and that on
several looks in a row. What is heard of neither is no sign of anything. Nor is a connection that is
taken and closed at once: sshd itself does that, by MaxStartups, and since 9.8 for up to ten minutes
to an address from which log-ins failed.

Not covered: a box that ends its sshd and lives on. Only the console knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum

from boxcar.laptop.common import side_by_side
from boxcar.laptop.ssh.ssh_errors import KeyRefused, ProxyFailed, TooManyConnections, Unreachable
from boxcar.shared.errors import BoxcarError, InputError

LOOKS = 3
WITHIN_S = 90.0


class Sign(Enum):
    """What a look at a box has shown."""

    ANSWERS = "it still answers"
    STRANGER = "another machine answers under its name"
    TURNED_AWAY = "its address refuses the connection"
    SHUT_OUT = (
        "its address closes each connection at once, as a gateway may, or an sshd that shuts this "
        "address out for some minutes"
    )
    NOTHING = "nothing comes back from it"
    LOST = "nothing comes back from it, nor from any other box: this machine may be cut off"


# A refusal is somebody's word; nothing at all has to last.
PAUSE_S = {
    Sign.ANSWERS: 3.0,
    Sign.TURNED_AWAY: 3.0,
    Sign.SHUT_OUT: 3.0,
    Sign.NOTHING: 10.0,
    Sign.LOST: 10.0,
}
# Asks a box for a sign of life. Raises as `Ssh.run` does.
Knock = Callable[[str], object]


def wait_until_silent(knock: Knock, box: str, others: Sequence[str]) -> Sign | None:
    """None once the box is silent; the last sign where it is not, or nobody can tell."""
    silent_looks, until = 0, time.monotonic() + WITHIN_S
    while True:
        sign = look_for_signs(knock, box, others)
        if sign is Sign.STRANGER:
            return sign
        silent_looks = silent_looks + 1 if sign in (Sign.TURNED_AWAY, Sign.NOTHING) else 0
        if silent_looks == LOOKS:
            return None
        # What has begun to be silent is looked at to the end.
        if not silent_looks and time.monotonic() > until:
            return sign
        time.sleep(PAUSE_S[sign])


def look_for_signs(knock: Knock, box: str, others: Sequence[str]) -> Sign:
    """One look at the box; where nothing comes back, at the others too."""
    sign = _sign_of(knock, box)
    if sign is not Sign.NOTHING or _is_any_heard(knock, others):
        return sign
    return Sign.LOST


def _is_any_heard(knock: Knock, boxes: Sequence[str]) -> bool:
    signs = side_by_side.each(boxes, lambda box: _sign_of(knock, box))
    return any(sign is not Sign.NOTHING for sign in signs)


def _sign_of(knock: Knock, box: str) -> Sign:
    try:
        knock(box)
    except ProxyFailed:
        return Sign.NOTHING  # what leads there said it, whatever it said
    except TooManyConnections:
        return Sign.SHUT_OUT
    except Unreachable as error:
        return Sign.TURNED_AWAY if error.is_brief else Sign.NOTHING
    except KeyRefused:
        return Sign.ANSWERS  # an sshd that knows the box's key lives
    except InputError:
        return Sign.STRANGER
    except BoxcarError:
        return Sign.ANSWERS  # it said something, if nothing that helps
    return Sign.ANSWERS
