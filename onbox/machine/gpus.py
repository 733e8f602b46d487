"""The GPUs of this box, as NVML tells them: the verb `onbox gpus`, one JSON list on stdout.

A process of its own, because the library doubles the agent's memory, and because a broken driver
may hang whoever asks it.
"""

from __future__ import annotations

import contextlib
import ctypes
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
from onbox.machine.xids import Xids

TIMEOUT_S = 20.0
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


def has_device() -> bool:
    """Whether there is anything to be asked."""
    return any(device.exists() for device in _DEVICES)


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
    if not has_device():
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


def rows(xids: Xids | None = None) -> list[dict[str, Any]]:
    """Asks NVML here; a GPU that does not answer is a row that says why."""
    import pynvml

    try:
        pynvml.nvmlInit()
        xids = xids or Xids()
        xids.look()
        return [_row(index, xids) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []


def _row(index: int, xids: Xids) -> dict[str, Any]:
    import pynvml

    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        slices = _slices(handle)
        row = {
            "name": pynvml.nvmlDeviceGetName(handle),
            "uuid": pynvml.nvmlDeviceGetUUID(handle),
            "driver": pynvml.nvmlSystemGetDriverVersion(),
            **({"mig": slices} if slices else {}),
            "memory_used_bytes": memory.used,
            "memory_total_bytes": memory.total,
            "temperature_c": pynvml.nvmlDeviceGetTemperature(handle, 0),
        }
        xid = xids.last(index, handle)
        return row | _health(handle) | ({"xid": xid} if xid is not None else {})
    except pynvml.NVMLError as error:
        return {"problem": words_of(error)}


def follow(agent: int, every_s: float) -> None:
    """The rows as a line of JSON, again and again, while the agent lives and hears it."""
    import pynvml

    process.die_with_parent()
    xids = Xids()
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        xids.listen()
    _give_memory_back()
    with contextlib.suppress(BrokenPipeError):
        while os.getppid() == agent:
            print(json.dumps(rows(xids)), flush=True)
            time.sleep(every_s)


def _give_memory_back() -> None:
    """Compiling NVML's library, which a zip holds as text, takes 9 MB that glibc keeps else."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


# Bits of NVML's clocks event reasons under which a card is slower than it should be. A software
# power cap (0x4) is none: a card at full load runs at its cap.
_SLOWED_BY = {
    0x08: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
_UNCORRECTED, _SINCE_START, _DOUBLE_BIT = 1, 0, 1


def _health(handle: Any) -> dict[str, Any]:
    """How a card works, and what is wrong with it; what it does not support is left out."""
    import pynvml

    found: dict[str, Any] = {}
    for name, ask in _HEALTH.items():
        with contextlib.suppress(pynvml.NVMLError):
            found[name] = ask(handle)
    return found


def _power_w(handle: Any) -> int:
    import pynvml

    return round(int(pynvml.nvmlDeviceGetPowerUsage(handle)) / 1000)


def _slowed_by(handle: Any) -> list[str]:
    import pynvml

    reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return [words for bit, words in _SLOWED_BY.items() if reasons & bit]


def _ecc_errors(handle: Any) -> int:
    """That nothing corrected, since the driver was loaded."""
    import pynvml

    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, _UNCORRECTED, _SINCE_START))


def _retired_rows(handle: Any) -> int:
    """Rows of memory that were replaced for errors that nothing corrected: from Ampere on rows are
    remapped, before it pages are retired.
    """
    import pynvml

    try:
        return int(pynvml.nvmlDeviceGetRemappedRows(handle)[1])
    except pynvml.NVMLError:
        return len(pynvml.nvmlDeviceGetRetiredPages(handle, _DOUBLE_BIT))


def _utilization_percent(handle: Any) -> int:
    """Not known of a card that is divided (MIG)."""
    import pynvml

    return int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)


_HEALTH: dict[str, Callable[[Any], Any]] = {
    "utilization_percent": _utilization_percent,
    "power_w": _power_w,
    "slowed_by": _slowed_by,
    "ecc_errors": _ecc_errors,
    "retired_rows": _retired_rows,
}


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
