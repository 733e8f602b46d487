"""What is known of an ended attempt, in one record."""

from __future__ import annotations

from boxcar.shared.record import dataclass
from boxcar.shared.triage.cause import Cause


@dataclass(frozen=True)
class Evidence:
    """`log` is the attempt's part of the log, or its end; its first line has the number
    `log_begins_at_line`. `rcs` are the codes of the launcher and of its workers, empty where nobody
    knows them; negative is a signal's number. `error_file` is torchrun's, of the first rank that
    failed; `gpu_problems` what the driver says of its GPUs. `own` is what a person's signature
    found in the log.
    """

    log: str = ""
    log_begins_at_line: int = 1
    rcs: frozenset[int] = frozenset()
    oom_kills: int = 0
    gpu_problems: tuple[str, ...] = ()
    error_file: str = ""
    own: Cause | None = None
