"""Load checks by children of one process that has all loaded, where checks come close together.

What such a child finds good is good. Whatever else it says, and where it or its parent ends before
it is through, an interpreter that is started anew for it decides, as it does for files that may run
code. Nothing is kept beside a long training: the parent is started where another check came less
than IDLE_S before, or is likely to come within it, with torch where one has needed it, and ends
IDLE_S after the last.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from boxcar.shared import load_child
from boxcar.shared.files.plan import TRUSTED, Artifact
from boxcar.shared.load_child import CHECK, END, IDLE_S, PLAIN, READY, Child, Loaded, Manner

if TYPE_CHECKING:
    import socket

# NumPy's threads would be there before the first fork.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_END_S = 10.0


class GoneError(Exception):
    """The resident process has ended, or was never ready."""


class ResidentCheck:
    """One for each agent; used by one thread at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._resident: _Resident | None = None
        # The last check: whose, and when.
        self._last: tuple[Child, float] | None = None
        self._with_torch: set[Child] = set()
        self._never: set[Child] = set()

    def load(
        self,
        child: Child,
        folder: Path,
        files: Sequence[Artifact],
        manner: Manner = PLAIN,
        *,
        is_soon_again: bool = False,
    ) -> Loaded:
        """As load_child.load. `is_soon_again`: the next one is likely to come within IDLE_S."""
        found = Loaded()
        if self._is_worth_it(child, is_soon_again) and not any(
            file.load == TRUSTED for file in files
        ):
            found = self._by_resident(child, folder, files, manner)
        if left := [file for file in files if file.path not in found.findings]:
            more = load_child.load(child, folder, left, manner)
            both = found.findings | more.findings
            found = Loaded(
                {file.path: both[file.path] for file in files}, more.loader, more.sandbox
            )
        if found.loader:
            self._last = child, self._clock()
        if "torch " in found.loader:
            self._with_torch.add(child)
        return found

    def close(self) -> None:
        if self._resident:
            self._resident.end()
            self._resident = None

    def _is_worth_it(self, child: Child, is_soon_again: bool) -> bool:
        if child in self._never:
            return False
        last, at = self._last or (None, 0.0)
        return is_soon_again or (last == child and self._clock() - at < IDLE_S)

    def _by_resident(
        self, child: Child, folder: Path, files: Sequence[Artifact], manner: Manner
    ) -> Loaded:
        """What it found good; nothing where anything about it was odd."""
        found = Loaded()
        with contextlib.suppress(GoneError, OSError):
            resident = self._of(child)
            found = load_child.ask_child(child, folder, files, manner, resident.forked)[0]
        if not found.loader:
            self.close()
            return Loaded()
        good = {path: one for path, one in found.findings.items() if one.is_good}
        return Loaded(good, found.loader, found.sandbox)

    def _of(self, child: Child) -> _Resident:
        """The one that lives, or a new one. Raises GoneError, OSError."""
        kinds = ("torch",) if child in self._with_torch else ()
        about = child, kinds
        if self._resident and (self._resident.about != about or not self._resident.lives):
            self.close()
        if self._resident is None:
            self._never.add(child)  # until it has said that it is ready
            self._resident = _Resident(child, kinds)
            self._resident.wait_until_ready()
            self._never.remove(child)
        return self._resident


class _Resident:
    """The process that forks, and the socket to it."""

    def __init__(self, child: Child, kinds: tuple[str, ...]) -> None:
        """`kinds` of files, for which it loads the libraries."""
        import socket

        self.child, self.about = child, (child, kinds)
        self._asks, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [child.argv[0], "-m", load_child.RESIDENT, *kinds],
                cwd=child.cwd,
                env=child.environment(os.environ) | _ONE_THREAD,
                stdin=theirs.fileno(),
                # A pipe to us is how a child of ours is told from an orphan (process.py).
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Raises GoneError, OSError."""
        self._asks.settimeout(self.child.timeout_s)
        if self._asks.recv(1) != READY:
            raise GoneError

    @contextlib.contextmanager
    def forked(
        self, child: Child, asked: IO[bytes], words: IO[bytes]
    ) -> Iterator[load_child.Process]:
        """A child that it forks; see load_child.Start. Raises OSError."""
        import socket

        reads, writes = os.pipe()
        stdout = os.fdopen(reads, "rb")
        try:
            socket.send_fds(self._asks, [CHECK], [asked.fileno(), writes, words.fileno()])
        except OSError:
            stdout.close()
            raise
        finally:
            os.close(writes)
        process = _Forked(self._asks, stdout)
        try:
            yield process
        finally:
            self._end_forked(process)

    def _end_forked(self, process: _Forked) -> None:
        """It has ended when this returns, or its parent has, with which it dies."""
        try:
            self._asks.sendall(END)
            process.wait(_END_S)
        except (OSError, subprocess.TimeoutExpired):
            self.end()

    def end(self) -> None:
        self._asks.close()
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()


class _Forked:
    """A process as load_child wants it, which is our child's child."""

    def __init__(self, asks: socket.socket, stdout: IO[bytes]) -> None:
        self._asks = asks
        self.stdout: IO[bytes] | None = stdout
        # So it ends where its parent does.
        self.returncode = -signal.SIGKILL
        self._has_ended = False

    def wait(self, timeout: float | None = None) -> int:
        self._asks.settimeout(timeout)
        said = b""
        while not self._has_ended:
            try:
                byte = self._asks.recv(1)
            except TimeoutError:
                raise subprocess.TimeoutExpired("a load check", timeout or 0.0) from None
            except OSError:
                byte = b""
            self._has_ended = byte in (b"", b"\n")
            said += byte
        if said.endswith(b"\n"):
            self.returncode = int(said)
        return self.returncode
