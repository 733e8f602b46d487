"""One switch for the tools that torch has for ranks that do not agree on their collectives.

    BOXCAR_DEBUG_HANGS=1 torchrun ... train.py      or DistributedConfig(debug_hangs=True)

It costs speed (torch compares each collective over all ranks before it runs), so it is for finding
a hang, not for every run; stall.py watches always and needs none of this. What the user has set
stays as it is.

Not covered: TORCH_CPP_LOG_LEVEL of a process that has torch loaded already. It is read when
torch's library is loaded, so only processes that are started later have it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from boxcar.training import torch_private

SWITCH = "BOXCAR_DEBUG_HANGS"
_COLLECTIVES_KEPT = "2000"
# Since torch 2.8 the flight recorder is not NCCL's alone; the old names still work and warn.
_RENAMED_IN = (2, 8)
_BUFFER = ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE")
_DUMP = ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE")


def is_asked(env: Mapping[str, str]) -> bool:
    """Whether the environment has the switch on."""
    return env.get(SWITCH, "0") not in ("", "0")


def settings(folder: Path, torch_version: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables to set, without those that `env` has already, under either of their names.

    NCCL's watchdog writes the flight recorder's entries to `folder`/flight_recorder_<rank>.
    """
    is_new = _numbers(torch_version) >= _RENAMED_IN
    wanted = {
        "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
        "TORCH_CPP_LOG_LEVEL": "INFO",
        _BUFFER[is_new]: _COLLECTIVES_KEPT,
        _DUMP[is_new]: str(folder / "flight_recorder_"),
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "NCCL_DEBUG": "WARN",
    }
    taken = {name for pair in (_BUFFER, _DUMP) if set(pair) & set(env) for name in pair}
    return {name: value for name, value in wanted.items() if name not in {*env, *taken}}


def enable(folder: Path) -> dict[str, str]:
    """Set the variables in this process, before its process group exists; returns what was set.

    `folder`, usually {out}/hang, is made. Raises RuntimeError when the group exists already.
    """
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        raise RuntimeError("desync.enable comes before init_process_group, found a group already")
    torch_private.spare_ddp_the_log_of_its_group()
    new = settings(folder, torch.__version__, os.environ)
    if not new:
        return new
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(new)
    # torch reads this one when it is imported, which has happened.
    dist.set_debug_level_from_env()
    if os.environ.get("RANK", "0") == "0":
        said = " ".join(f"{name}={value}" for name, value in new.items())
        print(f"boxcar: hangs are debugged, which slows every step: {said}", file=sys.stderr)
    return new


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("+")[0].split(".")[:2])
