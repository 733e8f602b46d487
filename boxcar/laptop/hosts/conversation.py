"""A program on a box that answers line by line: one start, and one round trip a question.

Not for several threads at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

from boxcar.laptop.common.run_program import MOST_BYTES, TooMuchSaid

_PART_BYTES = 64 * 1024
_END_S = 5.0


class Conversation:
    """`words` start ssh. Its stderr is a file, which nobody has to read meanwhile."""

    def __init__(self, words: Sequence[str]) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._program = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            start_new_session=True,
        )
        self.pid = self._program.pid

    @property
    def is_alive(self) -> bool:
        return self._program.poll() is None

    @property
    def said(self) -> str:
        """All of stderr so far."""
        size_bytes = os.fstat(self._stderr.fileno()).st_size
        return os.pread(self._stderr.fileno(), size_bytes, 0).decode("utf-8", "replace")

    def ask(self, data: bytes, mark: bytes, timeout_s: float) -> tuple[bytes, bool]:
        """Write `data`, and read up to a line that begins with `mark`, which is the answer; what
        was read, and whether that came. Raises subprocess.TimeoutExpired, TooMuchSaid.
        """
        assert self._program.stdin and self._program.stdout
        until, left, out = time.monotonic() + timeout_s, memoryview(data), b""
        stdin, stdout = self._program.stdin.fileno(), self._program.stdout.fileno()
        os.set_blocking(stdin, False)
        while (at := _end_of_answer(out, mark)) < 0:
            writes = [stdin] if left else []
            reads, writes, _ = select.select(
                [stdout], writes, [], max(0.0, until - time.monotonic())
            )
            if not reads and not writes:
                raise subprocess.TimeoutExpired(self._program.args, timeout_s)
            if writes:
                left = left[_written(stdin, left) :]
            if reads:
                part = os.read(stdout, _PART_BYTES)
                out += part
                if not part:
                    return out, False
            if len(out) > MOST_BYTES:
                raise TooMuchSaid
        return out[:at], True

    def end(self) -> int:
        """The program's exit code; it is ended where it does not end by itself."""
        for stream in (self._program.stdin, self._program.stdout):
            if stream:
                stream.close()
        try:
            self._program.wait(_END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._program.wait()
        return self._program.returncode

    def forget(self) -> None:
        """End it at once, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.end()


def _end_of_answer(out: bytes, mark: bytes) -> int:
    begin = 0 if out.startswith(mark) else out.find(b"\n" + mark) + 1
    if not begin and not out.startswith(mark):
        return -1
    return out.find(b"\n", begin) + 1 or -1


def _written(stdin: int, left: memoryview) -> int:
    try:
        return os.write(stdin, left[:_PART_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(left)  # it has ended: its stdout says so
