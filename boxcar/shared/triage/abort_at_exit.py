"""Torch's own threads may abort a program that has ended well: how the end of a log shows it.

When a rank's interpreter goes down, a thread of torch that still wants it is unwound by force, and
C++ ends the whole process: `terminate called without an active exception`, SIGABRT; the thread of
another rank that was talking to it throws, with the same end. Such a line alone says nothing of
when. So a program runs with PYTHONFAULTHANDLER, which writes the stacks of a rank that aborts: as
long as a script is at work, its `<module>` is among them.
"""

from __future__ import annotations

import re
from signal import SIGABRT

from boxcar.shared.triage import torchrun_words

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
    own, torchruns = torchrun_words.parted_by_torchrun(log_tail)
    rcs = torchrun_words.worker_rcs(torchruns)
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
