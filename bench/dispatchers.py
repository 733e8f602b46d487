"""Other ways to run one Python script after another: what people have today, and other queues."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.environment import clean_environment

# Runs these words once for each folder, which comes behind them, in their order, and returns when
# all have ended.
Dispatcher = Callable[[Sequence[str], Sequence[Path]], None]
BASH = "bash while read"
TSP = "task-spooler"
PARALLEL = "GNU parallel"
HYPERQUEUE = "HyperQueue"
_LOOP = 'while read -r out; do "$@" "$out" </dev/null; done'


def found() -> tuple[dict[str, Dispatcher], list[str]]:
    """Those that are installed, by their names, and the names of the others."""
    programs = {BASH: ("bash", by_bash), TSP: ("tsp", _by_tsp), PARALLEL: ("parallel", _by)}
    ways = {name: way for name, (program, way) in programs.items() if shutil.which(program)}
    if importlib.util.find_spec("hyperqueue"):
        ways[HYPERQUEUE] = _by_hyperqueue
    return ways, [name for name in (*programs, HYPERQUEUE) if name not in ways]


def python(script: Path) -> list[str]:
    return [sys.executable, "-u", str(script)]


def torchrun(script: Path, ranks: int) -> list[str]:
    """How a person starts it on one box."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*launcher, f"--nproc-per-node={ranks}", str(script)]


def by_bash(words: Sequence[str], outs: Sequence[Path], loop: str = _LOOP) -> None:
    """The words, and a folder behind them, for each of these folders, which are made."""
    for out in outs:
        out.mkdir(parents=True, exist_ok=True)
    _run(["bash", "-c", loop, "bash", *words], _lines(outs))


def _by(words: Sequence[str], outs: Sequence[Path]) -> None:
    _run(["parallel", "--will-cite", "-j1", *words, "{}"], _lines(outs))


def _by_tsp(words: Sequence[str], outs: Sequence[Path]) -> None:
    with Spooler() as spooler:
        for out in outs:
            spooler.add(words, out)
        spooler.wait()


class Spooler:
    """A server of task-spooler's of its own."""

    def __enter__(self) -> Spooler:
        self._folder = tempfile.TemporaryDirectory(prefix="boxcar-bench-tsp-")
        self._env = {"TS_SOCKET": f"{self._folder.name}/socket", "TMPDIR": self._folder.name}
        _run(["tsp"], env=self._env)
        return self

    @property
    def pid(self) -> int:
        """Of the server."""
        ours = f"TS_SOCKET={self._env['TS_SOCKET']}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if ours in (process / "environ").read_bytes().split(b"\0"):
                    return int(process.name)
        raise ProcessLookupError("the server of task-spooler is gone")

    def add(self, words: Sequence[str], out: Path) -> float:
        """When the line was typed."""
        typed_at = time.time()
        _run(["tsp", "-n", *words, str(out)], env=self._env)
        return typed_at

    def wait(self) -> None:
        """Until the last one that was added has ended."""
        # It ends as the job did; a Python whose stdout is closed, as there, with 120.
        _run(["tsp", "-w"], env=self._env, check=False)

    def __exit__(self, *error: object) -> None:
        _run(["tsp", "-K"], env=self._env)
        self._folder.cleanup()


def _by_hyperqueue(words: Sequence[str], outs: Sequence[Path]) -> None:
    with HyperQueue() as queue:
        queue.add(words, *outs)
        queue.wait()


class HyperQueue:
    """A server and a worker of one core of HyperQueue's, in threads of this process."""

    def __enter__(self) -> HyperQueue:
        # Not installed everywhere.
        from hyperqueue.cluster import LocalCluster, WorkerConfig

        self._folder = tempfile.TemporaryDirectory(prefix="boxcar-bench-hyperqueue-")
        self._cluster = LocalCluster(self._folder.name, WorkerConfig(cores=1))
        self._client = self._cluster.client()
        self._submitted: list[Any] = []
        self.pid = os.getpid()
        return self

    def add(self, words: Sequence[str], *outs: Path) -> float:
        """When they were submitted: a task for each, in their order."""
        from hyperqueue import Job

        typed_at, job = time.time(), Job()
        for out in outs:
            job.program([*words, str(out)], stdout=None, stderr=None)
        self._submitted.append(self._client.submit(job))
        return typed_at

    def wait(self) -> None:
        """Until all that were added have ended."""
        # Its bar of progress goes between the tables.
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
            self._client.wait_for_jobs(self._submitted)

    def __exit__(self, *error: object) -> None:
        self._cluster.stop()
        self._folder.cleanup()


def _lines(outs: Sequence[Path]) -> str:
    return "".join(f"{out}\n" for out in outs)


def _run(
    words: Sequence[str],
    lines: str = "",
    env: Mapping[str, str] | None = None,
    *,
    check: bool = True,
) -> None:
    environ = clean_environment(os.environ) | dict(env or {})
    quiet = subprocess.DEVNULL
    subprocess.run(words, input=lines, text=True, check=check, env=environ, stdout=quiet)
