"""What this box is and has, as facts: the laptop judges them. Nothing here decides anything.

Every fact is best effort: one that cannot be had is left out, or is a `problem` in words.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import pwd
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, mounts
from onbox.answers.request import Request
from onbox.machine import gauges, gpus, interpreter, process

_SHM = Path("/dev/shm")
_TOOLS = ("tmux", "setsid", "rsync", "nvidia-smi")
_TOOL_TIMEOUT_S = 10.0


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """All the facts. Needs run, data_dir, durable_dir, credentials (the path of the file),
    training_python and hook (the profile's shell text).
    """
    at = timestamp.utc_now()  # first: what follows may take a while
    asked = Request(request)
    found_gpus = gpus.ask_child() or gpus.ask_nvidia_smi()
    return {
        "at": at,
        **_machine(),
        **_memory_and_cpu(),
        "gpus": found_gpus,
        "places": {
            "data": place(asked.path("data_dir")),
            "durable": place(asked.path("durable_dir")),
            "credentials": place(asked.path("credentials").parent),
        },
        "training": _training(asked, has_gpus=bool(found_gpus)),
        "tools": {name: shutil.which(name) for name in _TOOLS},
        "bash": _bash(),
        "has_run": {
            "data": _is_folder(asked.scratch.root),
            "durable": _is_folder(asked.tier.root),
        },
    }


def place(folder: Path) -> dict[str, Any]:
    """A folder, and the file system that it lies on, or will lie on once it is made."""
    facts: dict[str, Any] = {"path": str(folder), "is_there": False, "is_writable": False}
    try:
        there = _nearest(folder)
        facts |= {"is_there": there == folder, **gauges.room(there)}
        facts["device"] = there.stat().st_dev
        if mount := mounts.mount_of(there):
            facts |= {"mount": mount.point, "file_system": mount.file_system}
        _write_once(there)
        facts["is_writable"] = True
    except OSError as error:
        facts["problem"] = f"{error.filename or folder}: {error.strerror}"
    return facts


def _nearest(folder: Path) -> Path:
    """The folder or its nearest parent that is there. Raises OSError for a tier that is dead."""
    for step in (folder, *folder.parents):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(step.stat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "is no folder", str(step))
            return step
    return Path("/")


def _write_once(folder: Path) -> None:
    """Prove that a file can be made here and reaches the disk; it is removed again."""
    # Named as an unfinished write: should we die now, whoever clears those clears this.
    path = atomic.temporary_name(folder / "audit")
    try:
        atomic.write_whole(path, b"written by boxcar's audit\n")
    finally:
        path.unlink(missing_ok=True)


def _machine() -> dict[str, Any]:
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under an id that has no name
        user = str(os.getuid())
    return {"hostname": platform.node(), "boot_id": process.boot_id(), "user": user}


def _memory_and_cpu() -> dict[str, Any]:
    facts: dict[str, Any] = dict(gauges.memory())
    with contextlib.suppress(OSError, ValueError):
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        facts["memory_total_bytes"] = pages
    with contextlib.suppress(OSError):
        shm = gauges.room(_SHM)
        facts |= {"shm_size_bytes": shm["size_bytes"], "shm_free_bytes": shm["free_bytes"]}
    quota = gauges.cpu_quota_cores()
    if quota is not None:
        facts["cpu_quota_cores"] = quota
    return facts | {"cpu_count": _cpu_count()}


def _cpu_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _training(asked: Request, *, has_gpus: bool) -> dict[str, Any]:
    python, hook = asked.text("training_python"), asked.text("hook")
    facts = interpreter.look(python, hook)
    if has_gpus and facts.get("packages", {}).get("torch"):
        told = interpreter.cuda(python, hook)
        facts |= {"cuda_problem": told["problem"]} if "problem" in told else told
    return facts


def _bash() -> str | None:
    """The version of the bash that runs the wrappers."""
    try:
        done = subprocess.run(
            ["bash", "-c", 'echo "$BASH_VERSION"'],
            capture_output=True,
            text=True,
            timeout=_TOOL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
