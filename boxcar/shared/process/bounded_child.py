"""A module of ours in a child that may do what a person's expression makes it do, within bounds.

The child answers in JSON Lines. Raises nothing for what the child does: it may end in any way.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# A child that was stopped or hangs on a disk.
WALL_S = 60.0
# What an interpreter may need to start; nothing else, it might be a secret.
_KEPT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")
# Where boxcar is imported from: a folder, or the agent's archive.
_HOME = str(Path(__file__).parents[3])


def ask(module: str, question: Any) -> tuple[int | None, list[dict[str, Any]]]:
    """How a child ended that was asked this, None for one that did not in time; its lines.

    Raises OSError where no child can be started.
    """
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as told:
        asked.write(json.dumps(question).encode())
        asked.seek(0)
        rc = _run(module, asked, told)
        told.seek(0)
        return rc, [_line(line) for line in told.read().splitlines()]


def was_late(rc: int | None) -> bool:
    """Whether it used up its time: of CPU, or by the clock."""
    return rc in (-signal.SIGPROF, None)


def limit_time(cpu_s: float) -> None:
    """In the child: from now on so much CPU; then the kernel ends it, whatever it is in."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)


def limit_memory(size_bytes: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size_bytes, size_bytes))


def _run(module: str, asked: Any, told: Any) -> int | None:
    """The exit code of the child; None for one that did not end in time."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", module],
        cwd="/",
        env=_environment(),
        stdin=asked,
        stdout=told,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(WALL_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONPATH": _HOME, "PYTHONDONTWRITEBYTECODE": "1"}


def _line(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
