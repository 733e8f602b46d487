"""A port of a box's own 127.0.0.1 that leads to the same one here, by a connection of its own.

The connection lasts as long as this process: what holds it open there reads a pipe of ours, so both
ends end with us, however we end.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from boxcar.laptop.hosts import connection
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.hosts.ssh_errors import Unreachable
from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from boxcar.shared.sentence import _

# A program on a box behind a connection of its own, and ports of this machine that lead there.
#
# Both last as long as the connection: the program ends when its stdin does.


_TRIES = 5
_TIMEOUT_S = 20.0


def forward(alias: str, control: Path, there: int) -> int:
    """A free port of this machine's 127.0.0.1 that leads to the box's own one. Raises InputError
    where its sshd forwards none.
    """
    said: str | None = None
    for _try in range(_TRIES):
        here = _free_port()
        said = _forward(alias, control, "-L", f"127.0.0.1:{here}:127.0.0.1:{there}")
        if said is None:
            return here  # else somebody may have taken the port meanwhile
    raise InputError(
        _("{alias}: cannot forward a local port to it: {said}", alias=alias, said=said)
    )


def _forward(alias: str, control: Path, way: str, ports: str) -> str | None:
    """What ssh says where it does not open the port; None where it does."""
    words = ["ssh", "-o", f"ControlPath={control}", "-o", "LogLevel=ERROR"]
    words += ["-o", "ClearAllForwardings=no", "-O", "forward", way, ports, alias]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise TemporaryError(_("{alias}: port forwarding timed out", alias=alias)) from None
    return done.stderr.strip() if done.returncode else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


CUT, AGAIN = "cut", "again"
_LOOK_EVERY_S = 0.1
_LONGEST_PAUSE_S = 30.0


class ReversePort:
    """`open` it, and `keep` it open until somebody says that it is over."""

    def __init__(self, ssh: Ssh, port: int) -> None:
        self.ssh, self.port = ssh, port
        self._process: subprocess.Popen[bytes] | None = None

    def open(self) -> None:
        """Raises InputError where sshd gives no such port, and as `Ssh.run` does."""
        self.ssh.run(["true"])  # its errors are sentences, and it pins the host's key
        words, control = self.ssh.own_connection()
        self._process = subprocess.Popen(
            [*words, "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + 2 * connection.CONNECT_TIMEOUT_S
        while not control.exists():
            if self._process.poll() is not None or time.monotonic() > until:
                self.close()
                raise Unreachable(self.ssh.alias, _("its connection did not stay open"))
            time.sleep(_LOOK_EVERY_S)
        ports = f"127.0.0.1:{self.port}:127.0.0.1:{self.port}"
        try:
            said = _forward(self.ssh.alias, control, "-R", ports)
        except TemporaryError:
            self.close()
            raise
        if said is not None:
            self.close()
            raise InputError(
                _(
                    "{alias}: its sshd did not open port {port}. The port is in use, usually by a "
                    "connection that was just cut (try again in a minute, or choose another with "
                    "--port), or AllowTcpForwarding is off in its sshd_config",
                    alias=self.ssh.alias,
                    port=self.port,
                )
            )

    def keep(self, end: threading.Event, tell: Callable[[str], None]) -> None:
        """Until `end`; opened again after each cut. `tell` hears CUT once for each, then AGAIN."""
        while not end.wait(_LOOK_EVERY_S):
            if self._process is not None and self._process.poll() is None:
                continue
            tell(CUT)
            failures = 0
            while not end.is_set():
                self.close()
                try:
                    self.open()
                    tell(AGAIN)
                    break
                except (BoxcarError, OSError):
                    # Also a port that is taken: sshd holds it until it knows of the cut.
                    failures += 1
                    end.wait(min(_LONGEST_PAUSE_S, connection.pause_s(failures)))
        self.close()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.stdin:
                process.stdin.close()
            process.terminate()
            process.wait()
