"""A process that is forked from one that has its modules loaded already.

Python's start and the loading of libraries take longer than most of what tests start hundreds of
times. What is forked is a process as any other: it has its own folder, environment, streams,
signals and end.

A subclass of Forked names the file of its server, which calls `serve`. There is one server of each
kind for each process of pytest, started when it is first needed; it ends when its socket closes.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, AnyStr, ClassVar

# Of the environment in which pytest was started: a test's own PATH names its folder.
_ENVIRONMENT = dict(os.environ)
# Python reads these before it loads any module.
_AT_START = ("LANG", "LC_", "PYTHON")
_PID, _STATUS = struct.Struct("q"), struct.Struct("i")
_CHUNK_BYTES = 64 * 1024
_ONE_AT_A_TIME = threading.Lock()

Become = Callable[[Sequence[str]], None]


class Forked(subprocess.Popen[AnyStr]):
    """As `Popen(words, cwd=..., env=..., stdin=..., ...)`; `args` begins with the program."""

    SERVER: ClassVar[tuple[str, ...]]  # its command line

    @classmethod
    def start_server(cls) -> None:
        _server(cls.SERVER)

    def _execute_child(self, args: Sequence[str], *more: Any) -> None:
        cwd, env, pipes = more[4], more[5], more[9:15]
        self._status, status = os.pipe()
        there = {"cwd": str(cwd or os.getcwd()), "env": dict(env)}  # noqa: PTH109
        request = json.dumps({"words": list(args), **there})
        # What is not asked for is the stream that this process has.
        streams = [fd if fd != -1 else at for at, fd in enumerate((pipes[0], pipes[3], pipes[5]))]
        try:
            with _ONE_AT_A_TIME:
                try:
                    self._send(request.encode() + b"\n", [*streams, status])
                finally:
                    os.close(status)  # then a server that has died is read as an end
                told = os.read(self._status, _PID.size)
        finally:
            self._close_pipe_fds(*pipes)
        if not told:
            raise ChildProcessError(f"{' '.join(self.SERVER)}: ended before it forked {args}")
        (self.pid,) = _PID.unpack(told)
        self._child_created = True

    def _send(self, data: bytes, fds: Sequence[int]) -> None:
        server = _server(self.SERVER)
        sent = socket.send_fds(server, [data], fds)
        server.sendall(data[sent:])

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        data = os.read(self._status, _STATUS.size)
        os.close(self._status)
        # Nothing: whoever waited for it was killed, as it was itself then.
        return self.pid, _STATUS.unpack(data)[0] if data else signal.SIGKILL

    def _internal_poll(self, *ignored: Any, **more: Any) -> int | None:
        with self._waitpid_lock:
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid == self.pid:
                    self._handle_exitstatus(status)
        return self.returncode


@functools.cache
def _server(words: tuple[str, ...]) -> socket.socket:
    ours, theirs = socket.socketpair()
    subprocess.Popen([*words, str(theirs.fileno())], env=_ENVIRONMENT, pass_fds=[theirs.fileno()])
    theirs.close()
    return ours


# --- in the server


def serve(become: Become) -> None:
    """Fork for each request until there are no more; what is forked calls `become`.

    The socket's number is the last word of the command line. All modules are loaded by now.
    """
    requests = socket.socket(fileno=int(sys.argv[-1]))
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, fds, _, _ = socket.recv_fds(requests, _CHUNK_BYTES, 4)
        while data and not data.endswith(b"\n"):
            data += requests.recv(_CHUNK_BYTES)
        if not data:
            return None
        if os.fork() == 0:
            requests.close()
            return _stay_for(json.loads(data), fds, become)
        for fd in fds:
            os.close(fd)


def _stay_for(request: Mapping[str, Any], fds: list[int], become: Become) -> None:
    """Fork once more: the parent tells the pid and how it ended, the child becomes the program."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    streams, status = fds[:3], fds[3]
    if pid := os.fork():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for fd in streams:
            os.close(fd)
        os.write(status, _PID.pack(pid))
        os.write(status, _STATUS.pack(os.waitpid(pid, 0)[1]))
        os._exit(0)
    for at, fd in enumerate(streams):
        os.dup2(fd, at)
    for fd in fds:
        os.close(fd)
    words, env = request["words"], request["env"]
    os.chdir(request["cwd"])
    if _at_start(env) != _at_start(os.environ):
        os.execve(words[0], words, env)
    os.environ.clear()
    os.environ.update(env)
    become(words)


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START)}
