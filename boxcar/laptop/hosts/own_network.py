"""Whether this machine's own network works: asked before a box is called silent."""

from __future__ import annotations

import socket
from collections.abc import Sequence

# Known ssh ports, inside China and outside. Of a network that lets no ssh out nothing is known of
# a box either.
DOORS = (("gitee.com", 22), ("github.com", 22), ("gitlab.com", 22), ("ssh.github.com", 443))
TIMEOUT_S = 5.0


def is_up(doors: Sequence[tuple[str, int]] = DOORS, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether one of them opens and speaks as sshd does: a captive portal opens any, and says
    nothing or something else.
    """
    return any(_speaks(door, timeout_s) for door in doors)


def _speaks(door: tuple[str, int], timeout_s: float) -> bool:
    try:
        with socket.create_connection(door, timeout_s) as line:
            line.settimeout(timeout_s)
            return line.recv(4) == b"SSH-"
    except OSError:
        return False
