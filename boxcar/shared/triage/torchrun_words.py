"""What torchrun writes into a log when a rank has failed: where that begins, and its report."""

from __future__ import annotations

import re

# The first of its lines that tell of a failure; everything before is the ranks' own.
_BEGINS = re.compile(r"^.*torch/distributed/elastic/multiprocessing/api\.py", re.M)
_WORKER_RC = re.compile(r"^\s*exitcode\s*:\s*(-?\d+) \(pid: \d+\)", re.M)


def parted(log: str) -> tuple[str, str]:
    """What the ranks wrote, and what torchrun wrote of their failure."""
    begins = _BEGINS.search(log)
    at = begins.start() if begins else len(log)
    return log[:at], log[at:]


def worker_rcs(log: str) -> set[int]:
    """How the workers ended, as its report has it; torchrun itself returns 1 whatever they did."""
    return {int(rc) for rc in _WORKER_RC.findall(log)}
