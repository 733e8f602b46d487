"""Ranks for tests: `run_ranks(2, body, 5)` runs `body(5)` in two processes, each with its result.

The processes are forked from a server that has torch loaded already, so two ranks cost a tenth of a
second and not three. They get the environment that torchrun would give them, with a free port.
`body` is a top-level function of the test file; it joins the process group itself.

A rank is ended without the interpreter's own teardown: what happens there, and torchrun itself, is
for tests that start real processes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import importlib.util
import inspect
import os
import pickle
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO

from waiting import LIMIT_S

# The others of a rank that failed find that out by themselves, or hang.
GRACE_S = LIMIT_S / 10
# Of its time, before a rank that is still there says in its log where it stands.
SHARE_UNTIL_STACKS = 0.9
# Below those that Linux and macOS hand out to whoever asks for any.
_PORTS = range(21_000, 29_000)
_OURS: deque[IO[str]] = deque(maxlen=100)  # locks, which end as they leave
# The first DDP of a process imports torch._dynamo, which takes longer than all the rest.
PRELOADED = (
    *("torch", "torch.distributed", "torch.utils.data", "torch.nn.parallel"),
    *("torch._dynamo", "torch.distributed.fsdp", "torch.distributed.checkpoint.state_dict"),
    "pytest",
)


class RanksFailed(Exception):
    """A rank raised, was killed, or was too late. `codes`: exit codes, negative for a signal."""

    def __init__(self, codes: list[int], logs: list[str]) -> None:
        said = [
            f"--- rank {n}, exit code {code}\n{log}"
            for n, (code, log) in enumerate(zip(codes, logs, strict=True))
        ]
        super().__init__("\n".join(said))
        self.codes, self.logs = codes, logs


def run_ranks(
    world: int,
    body: Callable[..., Any],
    *args: Any,
    timeout_s: float = LIMIT_S,
    env: Mapping[str, str] | None = None,
) -> list[Any]:
    """What `body(*args)` returned on each rank. Raises RanksFailed with all that they printed.

    Where there are fewer GPUs than ranks they see none, unless `env` says otherwise.
    """
    gpus = len([*Path("/dev").glob("nvidia[0-9]*")])
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if world > gpus else {}
    folder = Path(tempfile.mkdtemp(prefix="boxcar-ranks-"))
    request = {
        "world": world,
        "file": inspect.getsourcefile(body),
        "name": body.__name__,
        "args": pickle.dumps(args),
        "env": hidden | dict(env or {}),
        "sys_path": sys.path,
        "folder": str(folder),
        "timeout_s": timeout_s,
    }
    try:
        codes = _ask(request)
        if any(codes):
            raise RanksFailed(codes, [_log(folder, n).read_text("utf-8") for n in range(world)])
        return [pickle.loads(_result(folder, n).read_bytes()) for n in range(world)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens on, and that nobody gets meanwhile: it is none of those that the
    kernel hands out, and among all such tests it is ours, until we have taken many others."""
    folder = Path(tempfile.gettempdir(), "boxcar-test-ports")
    folder.mkdir(exist_ok=True)
    for port in random.sample(_PORTS, len(_PORTS)):
        lock = (folder / str(port)).open("a")
        with contextlib.suppress(OSError), socket.socket() as listener:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            listener.bind(("127.0.0.1", port))
            _OURS.append(lock)
            return port
        lock.close()
    raise AssertionError(f"no port is free from {_PORTS.start} to {_PORTS.stop - 1}")


@dataclass
class Server:
    """It has torch loaded, and forks for each that connects one that serves it. It ends when no
    process has its stdin any more."""

    process: subprocess.Popen[bytes]
    address: str


@cache
def server() -> Server:
    """One for this process and all that are forked from it from now on."""
    return start_server(PRELOADED)


def start_server(preloaded: Sequence[str]) -> Server:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")  # a name that the kernel chooses; who connects waits until it is ready
        listener.listen(100)
        here = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve_all"
        script = f"{here}; serve_all({list(preloaded)!r}, {listener.fileno()})"
        words = [sys.executable, "-c", script]
        fd = listener.fileno()
        process = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[fd])
        return Server(process, listener.getsockname())


@dataclass
class Connection:
    """To the process that forks our ranks; for the process that has made it."""

    socket: socket.socket
    to: BinaryIO
    from_: BinaryIO
    pid: int

    def end(self) -> None:
        """End that process with its ranks, and wait until it has."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(OSError):
            self.from_.read()
        self.socket.close()


@cache
def _connection(_of: int) -> Connection:
    made = socket.socket(socket.AF_UNIX)
    made.connect(server().address)
    from_ = made.makefile("rb")
    return Connection(made, made.makefile("wb"), from_, _receive(from_))


def _ask(request: dict[str, Any]) -> list[int]:
    connection = _connection(os.getpid())
    try:
        _send(connection.to, request)
        answer = _receive(connection.from_)
    except BaseException:
        # Its answer is still on the way, and would be taken for that to the next request.
        connection.end()
        _connection.cache_clear()
        raise
    assert answer is not None, "the server of the ranks has ended"
    return answer


def _send(pipe: BinaryIO, value: Any) -> None:
    data = pickle.dumps(value)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def _receive(pipe: BinaryIO) -> Any:
    head = pipe.read(8)
    return pickle.loads(pipe.read(struct.unpack("<Q", head)[0])) if len(head) == 8 else None


def _log(folder: Path, rank: int) -> Path:
    return folder / f"rank_{rank}.log"


def _result(folder: Path, rank: int) -> Path:
    return folder / f"rank_{rank}.pickle"


# --- the server


def serve_all(preloaded: Sequence[str], fd: int) -> None:
    """Fork a process for each that connects, until nobody is left who could."""
    listener = socket.socket(fileno=fd)
    for name in preloaded:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        connection = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            _serve(connection)
            break
        connection.close()


def _serve(connection: socket.socket) -> None:
    """Fork the ranks of one request after the other."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _told_to_end)
    requests, answers = connection.makefile("rb"), connection.makefile("wb")
    _send(answers, os.getpid())
    while (request := _receive(requests)) is not None:
        port = free_port()
        _End.has_ranks = True
        pids = [_fork(request, rank, port) for rank in range(request["world"])]
        codes = _wait(pids, request["timeout_s"])
        _End.has_ranks = False
        if _End.is_near:
            sys.exit()
        _send(answers, codes)


class _End:
    """Of the server. While it has ranks it ends with them, and no exception says so: one that is
    raised in a fork's own hooks is lost."""

    is_near = False
    has_ranks = False


def _told_to_end(*_: object) -> None:
    _End.is_near = True
    if not _End.has_ranks:
        sys.exit()


def _fork(request: dict[str, Any], rank: int, port: int) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _be_a_rank(request, rank, port)
        finally:
            os._exit(code)
    return pid


def _be_a_rank(request: dict[str, Any], rank: int, port: int) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    folder = Path(request["folder"])
    log = os.open(_log(folder, rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for fd in (1, 2):
        os.dup2(log, fd)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    faulthandler.dump_traceback_later(request["timeout_s"] * SHARE_UNTIL_STACKS, file=2)
    os.environ.update(_environment(request, rank, port))
    sys.path[:] = request["sys_path"]
    try:
        value = _body(request)(*pickle.loads(request["args"]))
        _result(folder, rank).write_bytes(pickle.dumps(value))
        return 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _environment(request: dict[str, Any], rank: int, port: int) -> dict[str, str]:
    world = str(request["world"])
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": world,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        "BOXCAR_OUT": request["folder"],
    } | request["env"]


def _body(request: dict[str, Any]) -> Callable[..., Any]:
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    path = Path(request["file"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, request["name"])


def _wait(pids: list[int], timeout_s: float) -> list[int]:
    """Each one's exit code; those that are too late are killed, with all that they started."""
    ends_at = time.monotonic() + timeout_s
    codes: dict[int, int] = {}
    try:
        while len(codes) < len(pids) and time.monotonic() < ends_at and not _End.is_near:
            for pid in set(pids) - set(codes):
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    codes[pid] = os.waitstatus_to_exitcode(status)
                    if codes[pid]:
                        ends_at = min(ends_at, time.monotonic() + GRACE_S)
            time.sleep(0.005)
    finally:
        for pid in pids:
            # Its workers too, also those of a rank that has ended.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            if pid not in codes:
                codes[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return [codes[pid] for pid in pids]
