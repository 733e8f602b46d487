"""`boxcar` as a process that is forked from one that has its modules loaded already.

Hundreds of verbs are typed in these tests, and to start Python and load the libraries takes longer
than most of them do. Such a verb is a process as any other: it has its own folder, environment,
streams, signals and end. A test that is about the program itself runs tiny_project.BOXCAR.

One server for each process of pytest, started by its first verb; it ends when its socket closes.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

# Of the environment in which pytest was started: a test's own PATH names its folder.
_ENVIRONMENT = dict(os.environ)
# Python reads these before it loads any module.
_AT_START = ("LANG", "LC_", "PYTHON")
# What the modules import only where it is needed, as most verbs here need it.
_LATE = ("jinja2", "pathspec", "rich.progress", "rich.table")
_PID, _STATUS = struct.Struct("q"), struct.Struct("i")
_CHUNK_BYTES = 64 * 1024
_ONE_AT_A_TIME = threading.Lock()


class ForkedVerb(subprocess.Popen[str]):
    """As `Popen([BOXCAR, *words], cwd=..., env=..., text=True)`; `args` begins with the program."""

    def _execute_child(self, args: Sequence[str], *more: Any) -> None:
        cwd, env, pipes = more[4], more[5], more[9:15]
        self._status, status = os.pipe()
        request = json.dumps({"words": list(args), "cwd": str(cwd), "env": dict(env)})
        try:
            with _ONE_AT_A_TIME:
                _send(request.encode() + b"\n", [pipes[0], pipes[3], pipes[5], status])
                (self.pid,) = _PID.unpack(os.read(self._status, _PID.size))
        finally:
            os.close(status)
            self._close_pipe_fds(*pipes)
        self._child_created = True

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


def _send(data: bytes, fds: Sequence[int]) -> None:
    sent = socket.send_fds(_server(), [data], fds)
    _server().sendall(data[sent:])


@functools.cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    words = [sys.executable, __file__, str(theirs.fileno())]
    subprocess.Popen(words, env=_ENVIRONMENT, pass_fds=[theirs.fileno()])
    theirs.close()
    return ours


# --- in the server


def serve(requests: socket.socket) -> None:
    """Fork for each request until there are no more; what is forked returns as the verb."""
    _load_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, fds, _, _ = socket.recv_fds(requests, _CHUNK_BYTES, 4)
        while data and not data.endswith(b"\n"):
            data += requests.recv(_CHUNK_BYTES)
        if not data:
            return None
        if os.fork() == 0:
            requests.close()
            return _stay_for(json.loads(data), fds)
        for fd in fds:
            os.close(fd)


def _load_all() -> None:
    import boxcar.laptop

    for module in pkgutil.walk_packages(boxcar.laptop.__path__, "boxcar.laptop."):
        importlib.import_module(module.name)
    for name in ("boxcar.cli", *_LATE):
        importlib.import_module(name)
    archives = importlib.import_module("boxcar.laptop.release.archives")
    archives.build_onbox(), archives.build_training()
    gc.collect()
    gc.freeze()


def _stay_for(request: Mapping[str, Any], fds: list[int]) -> None:
    """Fork once more: the parent tells the verb's pid and how it ended, the child becomes it."""
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
    os.closerange(3, max(fds) + 1)
    _become(request["words"], request["cwd"], request["env"])


def _become(words: list[str], cwd: str, env: dict[str, str]) -> None:
    os.chdir(cwd)
    if _at_start(env) != _at_start(os.environ):
        os.execve(words[0], words, env)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    sys.stdout.reconfigure(line_buffering=False)
    from boxcar.cli import program

    program.run()


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START)}


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
