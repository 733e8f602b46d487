"""One command on a box with its streams, which ends when nothing moves any more.

ssh ends by itself when the link is cut. A box that answers and does nothing, such as one whose
network disk hangs, is given up here.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import IO

from boxcar.laptop.transfer import remote_folder
from boxcar.laptop.transfer.child_environment import child_environment
from boxcar.laptop.transfer.remote_folder import Remote

MARK = b"BOXCAR-STREAM\n"
# A script says so before its first byte: what a login shell greets with comes before it.
SAY_MARK = "echo BOXCAR-STREAM;"
_MOST_GREETING_BYTES = 64 * 1024
_MOST_WORDS_BYTES = 64 * 1024
_LOOK_EVERY_S = 0.2


class Silent(Exception):
    """Nothing moved for `remote.SILENT_FOR_S` seconds."""


class RemotePipe:
    """`with RemotePipe(...) as pipe`: read or write, then `end()`. Leaving it ends ssh.

    `names` is what the command reads on its stdin; with None, `write` is that. Raises Silent.
    """

    def __init__(
        self, place: Remote, script: str, on_wait: Callable[[], None], names: bytes | None = None
    ) -> None:
        self._on_wait, self._looked_s = on_wait, time.monotonic()
        with contextlib.ExitStack() as files:
            self._stderr = files.enter_context(tempfile.TemporaryFile())
            # A file, because a pipe would have to be filled while the answer is read.
            typed = files.enter_context(tempfile.TemporaryFile())
            typed.write(names or b"")
            typed.seek(0)
            self._ssh = subprocess.Popen(
                [*shlex.split(place.ssh.rsync_shell()), place.ssh.alias, place.command(script)],
                stdin=subprocess.PIPE if names is None else typed,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                env=child_environment(),
            )
            self._files = files.pop_all()

    def __enter__(self) -> RemotePipe:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
        self._close_stdin()
        assert self._ssh.stdout
        self._ssh.stdout.close()
        if self._ssh.poll() is None:
            self._ssh.terminate()
        self._ssh.wait()

    def skip_greeting(self) -> None:
        """Read up to the mark. Raises EOFError where the command ended before, or never said it."""
        seen = b""
        while not seen.endswith(MARK):
            byte = self.read(1)
            if not byte or len(seen) > _MOST_GREETING_BYTES:
                raise EOFError
            seen += byte

    def read(self, size_bytes: int) -> bytes:
        """What is there, `size_bytes` at most; b"" at the end."""
        assert self._ssh.stdout
        self._wait_for(self._ssh.stdout, is_read=True)
        return os.read(self._ssh.stdout.fileno(), size_bytes)

    def read_whole(self, size_bytes: int) -> bytes:
        """Raises EOFError where the stream ends before `size_bytes`, at most some MB."""
        parts = []
        while size_bytes:
            if not (part := self.read(size_bytes)):
                raise EOFError
            parts.append(part)
            size_bytes -= len(part)
        return b"".join(parts)

    def write(self, data: bytes) -> int:
        """Raises BrokenPipeError where the command has ended."""
        assert self._ssh.stdin
        os.set_blocking(self._ssh.stdin.fileno(), False)
        view = memoryview(data)
        while view:
            self._wait_for(self._ssh.stdin, is_read=False)
            view = view[os.write(self._ssh.stdin.fileno(), view) :]
        return len(data)

    def end(self) -> tuple[int, str]:
        """Wait for the command: its exit code and the end of what it said on stderr."""
        self._close_stdin()
        while self.read(65536):
            pass
        code = self._ssh.wait()
        size_bytes = os.fstat(self._stderr.fileno()).st_size
        words = os.pread(
            self._stderr.fileno(), _MOST_WORDS_BYTES, max(0, size_bytes - _MOST_WORDS_BYTES)
        )
        return code, words.decode("utf-8", "replace").strip()

    def _close_stdin(self) -> None:
        if self._ssh.stdin and not self._ssh.stdin.closed:
            self._ssh.stdin.close()

    def _wait_for(self, stream: IO[bytes], *, is_read: bool) -> None:
        until = time.monotonic() + remote_folder.SILENT_FOR_S
        reads, writes = ([stream], []) if is_read else ([], [stream])
        self._look()
        while not any(select.select(reads, writes, [], _LOOK_EVERY_S)):
            self._look()
            if time.monotonic() > until:
                raise Silent

    def _look(self) -> None:
        """Also while the stream never pauses."""
        if (now_s := time.monotonic()) - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            self._on_wait()
