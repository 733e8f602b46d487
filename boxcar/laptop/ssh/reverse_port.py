"""A port of a box's own 127.0.0.1 that leads to one of this machine, by a connection of its own.

sshd chooses the port, or gives the one that is asked for. The connection lasts as long as this
process: what holds it open there reads a pipe of ours, so both ends end with us, however we end.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable

from boxcar.laptop.ssh import connection, host_keys
from boxcar.laptop.ssh.connection import Ssh
from boxcar.laptop.ssh.ssh_errors import Unreachable
from boxcar.shared.errors import BoxcarError, InputError, TemporaryError

CUT, AGAIN = "cut", "again"
_LOOK_EVERY_S = 0.1
_ASK_TIMEOUT_S = 20.0
_LONGEST_PAUSE_S = 30.0
_HOLD_OPEN = "cat"


class ReversePort:
    """`open` it, and `keep` it open until somebody says that it is over."""

    def __init__(self, ssh: Ssh, here_port: int, port: int = 0) -> None:
        """`port` is that of the box; 0 lets its sshd choose one, which is kept from then on."""
        self.ssh, self.here_port, self.port = ssh, here_port, port
        self._process: subprocess.Popen[bytes] | None = None

    def open(self) -> int:
        """The port there. Raises InputError where sshd gives none, and as `Ssh.run` does."""
        self.ssh.run(["true"])  # its errors are sentences, and it pins the host's key
        words, control = self.ssh.own_connection()
        with tempfile.TemporaryFile() as said:
            self._process = subprocess.Popen(
                [*words, _HOLD_OPEN],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            until = time.monotonic() + 2 * connection.CONNECT_TIMEOUT_S
            while not control.exists():
                if self._process.poll() is not None or time.monotonic() > until:
                    said.seek(0)
                    words_there = said.read().decode(errors="replace")
                    self.close()
                    raise self._not_opened(words_there)
                time.sleep(_LOOK_EVERY_S)
        self.port = self._forwarded(str(control))
        return self.port

    def keep(self, end: threading.Event, tell: Callable[[str], None]) -> None:
        """Until `end`; opened again after each cut. `tell` hears CUT once for each, then AGAIN."""
        while not end.is_set():
            if self._is_open():
                end.wait(_LOOK_EVERY_S)
                continue
            tell(CUT)
            if self._opened_again(end):
                tell(AGAIN)
        self.close()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.stdin:
                process.stdin.close()
            process.terminate()
            process.wait()

    def _is_open(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _opened_again(self, end: threading.Event) -> bool:
        failures = 0
        while not end.is_set():
            self.close()
            try:
                self.open()
                return True
            except (BoxcarError, OSError):
                # Also a port that is taken: sshd holds it until it knows that the old one is cut.
                failures += 1
                end.wait(min(_LONGEST_PAUSE_S, connection.pause_s(failures)))
        return False

    def _forwarded(self, control: str) -> int:
        there = f"127.0.0.1:{self.port}:127.0.0.1:{self.here_port}"
        words = ["ssh", "-o", f"ControlPath={control}", "-o", "LogLevel=ERROR"]
        words += ["-o", "ClearAllForwardings=no", "-O", "forward", "-R", there, self.ssh.alias]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=_ASK_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            self.close()
            raise TemporaryError(f"{self.ssh.alias}: its sshd does not open a port") from None
        if done.returncode:
            self.close()
            raise InputError(self._refused())
        return self.port or int(done.stdout.strip())

    def _refused(self) -> str:
        if self.port:
            return (
                f"{self.ssh.alias}: its port {self.port} is taken, mostly by a connection that was "
                "cut a moment ago: try again in a minute. For another port, which a launch has to "
                f"be told, type: rm {shlex.quote(str(self.ssh.home.listen))}"
            )
        return (
            f"{self.ssh.alias}: its sshd opens no ports (AllowTcpForwarding in its sshd_config). "
            "Events that nobody hears wait on the box, and watch delivers them; or give "
            "BOXCAR_WEBHOOK_URL an address that the box can reach"
        )

    def _not_opened(self, said: str) -> BoxcarError:
        error = host_keys.error(self.ssh.home, self.ssh.alias, said)
        return error or Unreachable(self.ssh.alias, "it opened no connection that stays")
