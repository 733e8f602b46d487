"""strace in front of a command: it kills a process, or makes a call fail, at the n-th such call."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

# What changes a disk for good. Each is a moment at which a machine may die.
CHANGES = "fsync,syncfs,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir"


def killed_at(number: int, calls: str = CHANGES) -> tuple[str, ...]:
    """SIGKILL for the first process that makes its `number`-th such call. It is not made."""
    return _strace(f"inject={calls}:error=EINTR:signal=SIGKILL:when={number}", calls)


def failing_at(number: int, calls: str, error: str, path: Path | None = None) -> tuple[str, ...]:
    """Each process's `number`-th such call fails, or that on one path alone; the next is made."""
    return _strace(f"inject={calls}:error={error}:when={number}", calls, path)


def skip_without_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace on this machine: no call can be made to fail")
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"strace is not permitted: {tried.stderr.decode()}")


def _strace(inject: str, calls: str, path: Path | None = None) -> tuple[str, ...]:
    only = ("-P", str(path)) if path else ()
    return ("strace", "-f", "-qq", "-o", "/dev/null", *only, "-e", f"trace={calls}", "-e", inject)
