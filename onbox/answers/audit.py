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
import socket
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, mounts
from boxcar.shared.errors import DamagedError, reason_of, words_of
from boxcar.shared.files import codec
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.facts import (
    Facts,
    Folder,
    Folders,
    Gpu,
    HasRun,
    Mirror,
    TrainingPython,
)
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import gauges, gpus, interpreter, mirrors, process

_SHM = Path("/dev/shm")
_TOOLS = ("tmux", "setsid", "rsync", "nvidia-smi")
_TOOL_TIMEOUT_S = 10.0
_RESOLVE_TIMEOUT_S = 10.0


def answer(question: box_asks.Audit, run: RunOnBox) -> Facts:
    at = timestamp.utc_now()  # first: what follows may take a while
    found_gpus = _gpus()
    memory, shm = gauges.memory(), _shm()
    return Facts(
        at=at,
        hostname=platform.node(),
        hostname_problem=_hostname_problem(platform.node()),
        boot_id=process.boot_id(),
        user=_user(),
        cpu_count=_cpu_count(),
        gpus=found_gpus,
        places=Folders(
            data=place(run.scratch.data_dir),
            durable=place(run.tier.durable_dir),
            credentials=place(paths.on_box(question.credentials).parent),
        ),
        training=_training(question, has_gpus=bool(found_gpus)),
        tools={name: shutil.which(name) for name in _TOOLS},
        bash=_bash(),
        has_run=HasRun(data=_is_folder(run.scratch.root), durable=_is_folder(run.tier.root)),
        memory_used_bytes=memory.get("memory_used_bytes"),
        memory_limit_bytes=memory.get("memory_limit_bytes"),
        memory_total_bytes=_memory_total_bytes(),
        shm_size_bytes=shm.get("size_bytes"),
        shm_free_bytes=shm.get("free_bytes"),
        cpu_quota_cores=gauges.cpu_quota_cores(),
        mirrors=_mirrors(question),
        **gauges.process_room(),
    )


def place(folder: Path) -> Folder:
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
        facts["problem"] = _("{head}: {text}", head=error.filename or folder, text=reason_of(error))
    return Folder(**facts)


def _nearest(folder: Path) -> Path:
    """The folder or its nearest parent that is there. Raises OSError for a tier that is dead."""
    for step in (folder, *folder.parents):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(step.stat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "is not a folder", str(step))
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


def _hostname_problem(name: str) -> str | None:
    """Why nobody here finds the box by its own name; a resolver that hangs is given up."""
    ended: list[str | None] = []

    def resolve() -> None:
        try:
            socket.getaddrinfo(name, None)
            ended.append(None)
        except (OSError, UnicodeError) as error:
            ended.append(words_of(error))

    asking = threading.Thread(target=resolve, daemon=True)
    asking.start()
    asking.join(_RESOLVE_TIMEOUT_S)
    return ended[0] if ended else f"no answer in {_RESOLVE_TIMEOUT_S:.0f} s"


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under an id that has no name
        return str(os.getuid())


def _memory_total_bytes() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _shm() -> dict[str, int]:
    with contextlib.suppress(OSError):
        return gauges.room(_SHM)
    return {}


def _cpu_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpus() -> tuple[Gpu, ...]:
    rows = gpus.ask_child() or gpus.ask_nvidia_smi()
    try:
        return tuple(codec.decode(Gpu, row, "the GPU's driver") for row in rows)
    except DamagedError as error:
        return (Gpu(problem=words_of(error)),)


def _training(question: box_asks.Audit, *, has_gpus: bool) -> TrainingPython:
    python, hook = question.training_python, question.hook
    facts = interpreter.look_at_python(python, hook, question.requirements)
    if has_gpus and (facts.get("packages") or {}).get("torch"):
        told = interpreter.cuda(python, hook)
        facts |= {"cuda_problem": told["problem"]} if "problem" in told else told
    try:
        return codec.decode(TrainingPython, facts, python)
    except DamagedError as error:  # what it printed was another program's
        return TrainingPython(problem=words_of(error))


def _mirrors(question: box_asks.Audit) -> tuple[Mirror, ...]:
    if not (question.env or question.has_pip):
        return ()  # who asks knows of none
    tried = mirrors.try_mirrors(
        paths.program_on_box(question.training_python),
        question.hook,
        question.env,
        has_pip=question.has_pip,
    )
    return tuple(Mirror(one.name, one.url, one.problem) for one in tried)


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
