"""Processes with torchrun's variables, in which a part of the bench runs on one or more ranks."""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic

_TIMEOUT_S = 600


def on_ranks(folder: Path, world: int, body: Callable[..., Any], *args: Any) -> Any:
    """What `body(*args)` gave on rank 0 (JSON), in new processes with torchrun's variables."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    call = json.dumps([body.__module__, body.__name__, args])
    command = [sys.executable, "-c", "from bench import on_ranks; on_ranks.be_a_rank()", call]
    both = [
        subprocess.Popen(command, env=_environment(folder, rank, world, port))
        for rank in range(world)
    ]
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    try:
        codes = [one.wait(_TIMEOUT_S) for one in both]
    finally:
        for one in both:
            one.kill()
    # torch may abort a rank at its end, when all is done: what counts is what was written.
    if not result.exists():
        raise RuntimeError(f"a rank of the bench failed: exit codes {codes}; its error is above")
    return json.loads(result.read_text())


def _environment(folder: Path, rank: int, world: int, port: int) -> dict[str, str]:
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    own = {name: str(number) for name, number in numbers.items()}
    own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, "BOXCAR_OUT": str(folder), "CUDA_VISIBLE_DEVICES": ""}


def be_a_rank() -> None:
    """One of the processes that `on_ranks` starts."""
    module, name, args = json.loads(sys.argv[1])
    result = getattr(importlib.import_module(module), name)(*args)
    if "boxcar.training.ranks" in sys.modules:
        sys.modules["boxcar.training.ranks"].leave()
    if os.environ["RANK"] == "0":
        atomic.write_whole(
            Path(os.environ["BOXCAR_OUT"], "result.json"), json.dumps(result).encode()
        )
