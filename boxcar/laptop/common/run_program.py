"""A program run to its end, bounded in time and in what it may say.

What a box prints is somebody else's word: `communicate` would keep all of it in memory, and a box
that prints without end fills it within the time that an answer may take.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

# An answer is some 11 MB of base64 at most.
MOST_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


class TooMuchSaid(Exception):
    """It printed more than MOST_BYTES, and was ended."""


def run(
    words: Sequence[str],
    data: bytes,
    timeout_s: float,
    *,
    stderr: IO[bytes] | None = None,
    hear: Callable[[bytes], None] = lambda said: None,
    on_begin: Callable[[int], None] = lambda pid: None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run to its end, or raise subprocess.TimeoutExpired or TooMuchSaid.

    In its own session: no terminal to ask on, no Ctrl-C. With `stderr` there is no pipe at all,
    which a process that goes to the background would hold. `hear` gets all of stderr so far, each
    time that there is more: of a program that takes its own connection along, it is all there is.
    `on_begin` gets its process, whose number is also that of its session.
    """
    pipe = subprocess.PIPE if stderr is None else subprocess.DEVNULL
    process = subprocess.Popen(
        words,
        stdin=pipe,
        stdout=pipe,
        stderr=stderr or pipe,
        bufsize=0,
        start_new_session=True,
        cwd=cwd,
        env=environment,
    )
    until = time.monotonic() + timeout_s
    try:
        on_begin(process.pid)
        out, err = _talk(process, data, until, hear) if stderr is None else (b"", b"")
        process.wait(max(0.0, until - time.monotonic()))
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def _talk(
    process: subprocess.Popen[bytes], data: bytes, until: float, hear: Callable[[bytes], None]
) -> tuple[bytes, bytes]:
    """Write `data` and read both streams to their ends."""
    assert process.stdin and process.stdout and process.stderr
    output = {process.stdout: bytearray(), process.stderr: bytearray()}
    left = memoryview(data)
    with selectors.DefaultSelector() as streams:
        for stream in output:
            streams.register(stream, selectors.EVENT_READ, stream)
        os.set_blocking(process.stdin.fileno(), False)
        streams.register(process.stdin, selectors.EVENT_WRITE, process.stdin)
        while streams.get_map():
            ready = streams.select(max(0.0, until - time.monotonic()))
            if time.monotonic() >= until:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in ready:
                if key.data is process.stdin:
                    left = left[_written(process.stdin, left) :]
                    is_over = not left
                else:
                    is_over = not _read(key.data, output)
                    if key.data is process.stderr:
                        hear(bytes(output[process.stderr]))
                if is_over:
                    streams.unregister(key.fileobj)
                    key.data.close()
    return bytes(output[process.stdout]), bytes(output[process.stderr])


def _written(stdin: IO[bytes], left: memoryview) -> int:
    """How much of it is done with: all, where nobody reads it any more."""
    if not left:
        return 0
    try:
        return os.write(stdin.fileno(), left[:_CHUNK_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(left)


def _read(stream: IO[bytes], said: dict[IO[bytes], bytearray]) -> bool:
    """Whether there may be more."""
    part = os.read(stream.fileno(), _CHUNK_BYTES)
    said[stream] += part
    if sum(map(len, said.values())) > MOST_BYTES:
        raise TooMuchSaid
    return bool(part)
