"""A program on a box behind a connection of its own, and ports of this machine that lead there.

Both last as long as the connection: the program ends when its stdin does.
"""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from boxcar.shared.errors import InputError, TemporaryError

_TRIES = 5
_TIMEOUT_S = 20.0


def forward(alias: str, control: Path, there: int) -> int:
    """A free port of this machine's 127.0.0.1 that leads to the box's own one. Raises InputError
    where its sshd forwards none.
    """
    said = ""
    for _ in range(_TRIES):
        here = _free_port()
        words = ["ssh", "-o", f"ControlPath={control}", "-o", "LogLevel=ERROR"]
        words += ["-o", "ClearAllForwardings=no", "-O", "forward"]
        words += ["-L", f"127.0.0.1:{here}:127.0.0.1:{there}", alias]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise TemporaryError(f"{alias}: its connection opens no port") from None
        if done.returncode == 0:
            return here
        said = done.stderr.strip()  # somebody else may have taken the port meanwhile
    raise InputError(f"{alias}: no port of this machine can lead there: {said}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
