"""The GPUs of this box, as NVML tells them: the verb `onbox gpus`, one JSON list on stdout.

A process of its own, because the library doubles the agent's memory, and because a broken driver
may hang whoever asks it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar.shared.cell import visible_gpus
from boxcar.shared.errors import DamagedError, words_of
from boxcar.shared.sentence import _
from onbox.machine import process

TIMEOUT_S = 20.0
EVERY_S = 60.0
# The devices of the driver; under WSL the other one. Without them nobody has to be asked.
_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
_SMI_FIELDS = {
    "name": "name",
    "uuid": "uuid",
    "driver_version": "driver",
    "utilization.gpu": "utilization_percent",
    "memory.used": "memory_used_bytes",
    "memory.total": "memory_total_bytes",
    "temperature.gpu": "temperature_c",
}


class Gpus:
    """Asks at most once a minute; in between the last answer stands."""

    def __init__(self, ask: Callable[[], list[dict[str, Any]]] | None = None) -> None:
        self._ask = ask or ask_child
        self._rows: list[dict[str, Any]] = []
        self._next_at = 0.0

    def read(self) -> list[dict[str, Any]]:
        if time.monotonic() >= self._next_at:
            self._rows = self._ask()
            self._next_at = time.monotonic() + EVERY_S
        return self._rows


def count() -> int:
    """The GPUs that a training would see: CUDA_VISIBLE_DEVICES, else what the driver names.

    Raises DamagedError where the driver is there and does not answer: one rank instead of eight
    would be another experiment.
    """
    visible = visible_gpus.of_env(os.environ)
    if visible is not None:
        return len(visible)
    found = len(ask_child())
    if not found and _DEVICES[0].exists():
        raise DamagedError(
            _(
                "this box has an NVIDIA driver that names no GPU; if that is intended, write "
                "nproc_per_node into job.yaml"
            )
        )
    return found


def pids_on_gpus() -> list[int]:
    """Who computes on the GPUs that are seen here; not those of another namespace."""
    return sorted({pid for _gpu, pid in users()})


def users() -> list[tuple[str, int]]:
    """The UUID of a GPU and the process that computes on it, as the driver's own program names
    them; processes of another namespace are left out.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [line.rpartition(",") for line in done.stdout.decode(errors="replace").splitlines()]
    found = [(gpu.strip(), int(pid)) for gpu, _comma, pid in lines if pid.strip().isdigit()]
    return [(gpu, pid) for gpu, pid in found if process.start_time(pid) is not None]


def ask_child() -> list[dict[str, Any]]:
    """What the verb says; empty where there is no GPU, or where the driver does not answer."""
    if not any(device.exists() for device in _DEVICES):
        return []
    command = [sys.executable, "-I", "-S", sys.argv[0], "gpus"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
        rows: list[dict[str, Any]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return rows


def ask_nvidia_smi() -> list[dict[str, Any]]:
    """The same rows from the driver's own program, for where NVML's library is not found."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    fields = ",".join(_SMI_FIELDS)
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode(errors="replace").splitlines()
    return [_smi_row(line) for line in lines if line.count(",") == len(_SMI_FIELDS) - 1]


def _smi_row(line: str) -> dict[str, Any]:
    """One line of nvidia-smi; memory is in MiB there, and what it cannot tell is `[N/A]`."""
    texts = ("name", "uuid", "driver")
    row: dict[str, Any] = {}
    for name, text in zip(_SMI_FIELDS.values(), line.split(","), strict=True):
        value = text.strip()
        if name in texts:
            row[name] = value
        elif value.isdigit():
            row[name] = int(value) * (1 << 20 if name.endswith("_bytes") else 1)
    return row


def rows() -> list[dict[str, Any]]:
    """Asks NVML here; a GPU that does not answer is a row that says why."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return [_row(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []


def _row(index: int) -> dict[str, Any]:
    import pynvml

    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        slices = _slices(handle)
        return {
            "name": pynvml.nvmlDeviceGetName(handle),
            "uuid": pynvml.nvmlDeviceGetUUID(handle),
            "driver": pynvml.nvmlSystemGetDriverVersion(),
            **({"mig": slices} if slices else {}),
            "utilization_percent": pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "memory_used_bytes": memory.used,
            "memory_total_bytes": memory.total,
            "temperature_c": pynvml.nvmlDeviceGetTemperature(handle, 0),
        }
    except pynvml.NVMLError as error:
        return {"problem": words_of(error)}


def _slices(handle: Any) -> list[str]:
    """The UUIDs of what a card was divided into (MIG); CUDA knows these by no number."""
    import pynvml

    found = []
    with contextlib.suppress(pynvml.NVMLError):
        if pynvml.nvmlDeviceGetMigMode(handle)[0]:
            for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
                with contextlib.suppress(pynvml.NVMLError):  # there may be fewer
                    one = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
                    found.append(pynvml.nvmlDeviceGetUUID(one))
    return found
