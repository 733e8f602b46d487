"""What torchrun writes into a log when a rank has failed: where that begins, and its report."""

from __future__ import annotations

import re

# The first of its lines that tell of a failure; everything before is the ranks' own.
_BEGINS = re.compile(r"^.*torch/distributed/elastic/multiprocessing/api\.py", re.M)
_WORKER_RC = re.compile(r"^\s*exitcode\s*:\s*(-?\d+) \(pid: (\d+)\)", re.M)
_ROOT = "Root Cause (first observed failure)"
_OF_ROOT = re.compile(r"^\s*(time|rank|error_file)\s*:\s*(\S+)", re.M)
_LONGEST_ROOT = 700  # characters
_ENDED = re.compile(r"Sending process (\d+) closing signal|Unable to shutdown process (\d+) via")


def parted_by_torchrun(log: str) -> tuple[str, str]:
    """What the ranks wrote, and what torchrun wrote of their failure."""
    begins = _BEGINS.search(log)
    at = begins.start() if begins else len(log)
    return log[:at], log[at:]


def worker_rcs(log: str) -> set[int]:
    """How the workers ended, as its report has it; torchrun itself returns 1 whatever they did.

    Where one had failed, those that torchrun ended for it do not count: it killed them, or they
    took its signal for the platform's.
    """
    found, ended = _WORKER_RC.findall(log), ended_by_it(log)
    by_themselves = {int(rc) for rc, pid in found if pid not in ended}
    return by_themselves or {int(rc) for rc, _ in found}


def ended_by_it(log: str) -> set[str]:
    """The process ids of the workers that torchrun told to end, or killed."""
    return {pid for pids in _ENDED.findall(log) for pid in pids if pid}


def root_cause(log: str) -> dict[str, str]:
    """`time`, `rank` and `error_file` of the rank that failed first, as far as they stand there.

    Each node's torchrun says it of its own ranks; the earliest counts: the others failed because
    that one was gone.
    """
    reports = [text[:_LONGEST_ROOT] for text in log.split(_ROOT)[1:]]
    # Of a key the first: torchrun may go on with what it knows of other ranks.
    found = [dict(reversed(_OF_ROOT.findall(report))) for report in reports]
    return min(found, key=lambda one: one.get("time", ""), default={})
