"""What the end of an attempt's log says of its cause: one row for each kind of failure. Data."""

from __future__ import annotations

import re

from boxcar.shared.record import dataclass
from onbox.agent.verdict import Action

DISK = "DISK"


@dataclass(frozen=True)
class Signature:
    failure: str
    pattern: re.Pattern[str]
    action: Action
    reason: str
    waits_s: tuple[float, ...] = ()


def _row(failure: str, pattern: str, action: Action, reason: str, *waits_s: float) -> Signature:
    return Signature(failure, re.compile(pattern), action, reason, waits_s)


DISK_ROW = _row(
    DISK,
    r"No space left on device|Disk quota exceeded|PytorchStreamWriter failed writing file",
    Action.RETRY,
    "a disk was full (bytes or inodes): free some",
    60,
    300,
)
# In the order of what outranks what: a dead GPU explains everything below it.
SIGNATURES = (
    _row(
        "U22",
        r"Xid.*\b(48|79)\b|GPU has fallen off the bus|Unable to determine the device handle",
        Action.STOP_QUEUE,
        "the GPU is dead: rent another box",
    ),
    _row(
        "ECC",
        r"uncorrectable ECC error encountered",
        Action.STOP_QUEUE,
        "the GPU's memory is faulty: rent another box",
    ),
    _row(
        "ROFS",
        r"Read-only file system",
        Action.STOP_QUEUE,
        "a disk became read-only: rent another box",
    ),
    DISK_ROW,
    _row(
        "W-ONLY",
        r"Weights only load failed|Unsupported global",
        Action.FAIL,
        "the script cannot load its own checkpoint with weights_only=True (a script that is not to "
        "be changed takes env: {TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD: '1'} in job.yaml)",
    ),
    _row(
        "DP15",
        r"killed by signal: Bus error|Unexpected bus error encountered in worker"
        r"|unable to (?:open shared memory object|write to file|mmap).*</?torch_"
        r"|unable to allocate shared memory",
        Action.FAIL,
        "/dev/shm is too small for the data loader: fewer workers, or a box with a larger one",
    ),
    _row(
        "M2",
        r"CUDA out of memory|OutOfMemoryError",
        Action.FAIL,
        "the GPU's memory is too small for this cell",
    ),
    _row(
        "U28a",
        r"no kernel image is available for execution|is not compatible with the current PyTorch",
        Action.STOP_QUEUE,
        "this torch was not built for this GPU",
    ),
    _row(
        "U28b",
        r"driver on your system is too old|forward compatibility was attempted",
        Action.STOP_QUEUE,
        "driver, CUDA and torch do not fit together on this box",
    ),
    _row(
        "U31",
        r"No CUDA GPUs are available|Found no NVIDIA driver",
        Action.STOP_QUEUE,
        "the box has no GPU attached",
    ),
    _row(
        "MOD",
        r"ModuleNotFoundError: No module named|undefined symbol|GLIBC(?:XX)?_\S+' not found",
        Action.FAIL,
        "the environment lacks a module",
    ),
    _row(
        "D4",
        r"EADDRINUSE|Address already in use|The server socket has failed to listen",
        Action.RETRY,
        "a port was taken",
        5,
        60,
    ),
    _row(
        "RDZV",
        r"Rendezvous(?:Timeout|Closed|Connection)Error",
        Action.RETRY,
        "the ranks did not find each other",
        30,
        120,
    ),
    _row(
        "D8",
        r"Expected to have finished reduction in the prior iteration",
        Action.FAIL,
        "parameters without a gradient under DDP",
    ),
    _row(
        "DEVSIDE",
        r"device-side assert triggered",
        Action.FAIL,
        "an index or label is out of range on the GPU",
    ),
    _row(
        "IMA",
        r"an illegal memory access was encountered",
        Action.RETRY,
        "an illegal memory access on the GPU",
        30,
    ),
    _row(
        "D19",
        r"Watchdog caught collective operation timeout|Detected mismatch between collectives",
        Action.RETRY,
        "a rank died or diverged and the others waited for it",
        30,
    ),
    _row(
        "NCCL-S",
        r"NCCL error.*unhandled|ncclInternalError|Connection closed by remote peer",
        Action.RETRY,
        "NCCL lost a peer",
        30,
    ),
    _row(
        "HUP",
        r"Received 1 death signal|closing signal SIGHUP",
        Action.RETRY,
        "the launcher was hung up on (SIGHUP)",
        5,
        60,
    ),
)
