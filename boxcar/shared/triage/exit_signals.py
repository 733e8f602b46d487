"""What an exit code says where nothing else does: a signal's, or one that a shell gives."""

from __future__ import annotations

import re
from collections.abc import Collection
from signal import SIGABRT

# What torchrun writes into a log when a rank has failed: where that begins, and its report.


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


# Torch's own threads may abort a program that has ended well: how the end of a log shows it.
#
# When a rank's interpreter goes down, a thread of torch that still wants it is unwound by force,
# and C++ ends the whole process: `terminate called without an active exception`, SIGABRT; the
# thread of another rank that was talking to it throws, with the same end. Such a line alone says
# nothing of when. So a program runs with PYTHONFAULTHANDLER, which writes the stacks of a rank that
# aborts: as long as a script is at work, its `<module>` is among them.


_LAST_WORDS = re.compile(
    r"(?:\[\w+\]:\s*)?terminate called (?:without an active exception|"
    r"after throwing an instance of 'gloo::IoException'\s+what\(\):.*)"
)
_STACKS = re.compile(
    r"Fatal Python error: Aborted|(?:Current thread|Thread) 0x|  <no Python frame>|"
    r'  File "[^"]*", line \d+ in (?!<module>)|  Garbage-collecting|Extension modules: |'
    r"Current thread's C stack trace|  Binary file |  <cannot get C stack"
)
_ENDED_A_RANK = "closing signal"


def is_abort_at_exit(log_tail: str) -> bool:
    """Whether ranks were aborted after their script's own end, and nothing else went wrong.

    A rank that torchrun had to end may have been at work: then it is not. What the script left must
    be looked at all the same; this only says that it was not cut off.
    """
    own, torchruns = parted_by_torchrun(log_tail)
    rcs = worker_rcs(torchruns)
    return _ends_with_it(own) and rcs <= {-SIGABRT} and _ENDED_A_RANK not in torchruns


def _ends_with_it(own: str) -> bool:
    """Whether from those words on, the ranks printed nothing but stacks without a script."""
    lines = [line for line in own.replace("\n  what():", " what():").splitlines() if line.strip()]
    are_words = [_LAST_WORDS.fullmatch(line.strip()) is not None for line in lines]
    if not any(are_words):
        return False
    first = are_words.index(True)
    return all(
        is_words or _STACKS.match(line)
        for is_words, line in zip(are_words[first:], lines[first:], strict=True)
    )


# The surest first: who is killed last may have been told to end before.
_ROWS = (
    ("SEGV", 11),
    ("BUS", 7),
    ("ILL", 4),
    ("FPE", 8),
    ("137-N", 9),
    ("ABRT", 6),
    ("HUP", 1),
    ("INT", 2),
    ("TERM", 15),
)


# `timeout` ended it; what was to be run cannot be run, or is not there.
_OF_SHELLS = {124: "TIME_LIMIT", 126: "NOEXE", 127: "NOEXE"}


def signal_of_exit(rcs: Collection[int]) -> str:
    """The id of the row, '' for none. Negative is the signal's number, from 128 on a shell's."""
    for id, number in _ROWS:
        if -number in rcs or 128 + number in rcs:
            return id
    return next((id for rc, id in _OF_SHELLS.items() if rc in rcs), "")


def is_signal(rc: int) -> bool:
    return rc < 0 or 128 < rc < 160
