"""What was handed to sbatch, on the durable tier: written before the call, and after it.

`slurm/submitting.json` is there while somebody submits; of two who begin at once one makes it. What
it says tells the next one what to look for, should nobody know what came of the call. Once a job is
known the record goes to `slurm/submits/<token>.json`, and stays.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.files import codec
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Submit:
    """`queues` by the index of their task, as text. `is_sent`: sbatch may have been called.

    `job` is the number of the array; None where it is not known. `host` and `pid` are whose call it
    was, `started` when that process began.
    """

    FORMAT: ClassVar[str] = "slurm_submit"
    VERSION: ClassVar[int] = 1

    token: str
    release: str
    script: str
    queues: dict[str, str]
    at: str
    host: str
    pid: int
    started: str
    is_sent: bool = False
    job: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def read_submit(path: Path) -> Submit | None:
    """None where there is none. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return codec.from_document(Submit, data, str(path))
