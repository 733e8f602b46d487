"""Whether an attempt that a signal ended had come to its end, and what is doubtful of a success.
Pure: decided from values.

An end is proven, or it is none. What only looks like one is a success where nothing can go on from
a checkpoint, and is marked: whoever reads the result reads the doubt.
"""

from __future__ import annotations

from boxcar.shared.record import dataclass

ENDED_BEFORE = (
    "it was ended by a signal after it had written everything: its last epoch was reported, and "
    "its artifacts are newer than that, and load"
)
ABORTED_AT_EXIT = (
    "torch's own threads aborted it after its script's end (terminate called): a fault of torch, "
    "and its artifacts load"
)
# A program's own fault, which may come as it goes down; every other signal is sent by somebody.
_CRASHES = {"SEGV": "SIGSEGV", "ABRT": "SIGABRT", "BUS": "SIGBUS"}
_SENT = {"137-N": "SIGKILL", "TERM": "SIGTERM", "HUP": "SIGHUP", "INT": "SIGINT"}
_AT_ITS_END_NS = 5_000_000_000


@dataclass(frozen=True)
class Left:
    """What an attempt left that a signal ended, with every artifact there. Times as files have
    them.

    `signal` is the row of exit_signals. `is_ended`: what `had_ended` tells, `names_last` what its
    log alone does. `newest_ns` is the newest artifact's time, `reported_ns` that of its
    progress.jsonl (0: none), `logged_ns` its log's. `lacks_metric`: one that the job names.
    """

    signal: str
    is_abort_at_exit: bool
    is_ended: bool | None
    names_last: bool
    newest_ns: int
    reported_ns: int
    logged_ns: int
    ended_ns: int
    may_go_on: bool
    was_told_to_stop: bool
    lacks_metric: bool


@dataclass(frozen=True)
class Success:
    """`warning` is a sentence for its result, `doubt` what marks it in every table."""

    warning: str = ""
    doubt: str = ""


def success_of(left: Left) -> Success | None:
    """None: its end is not proven."""
    if left.is_abort_at_exit:
        return Success(ABORTED_AT_EXIT)
    if left.is_ended is False or left.lacks_metric or left.newest_ns < left.reported_ns:
        return None
    if left.is_ended:
        return Success(ENDED_BEFORE)
    # With a checkpoint to go on from, it costs little to let it go on.
    if left.may_go_on or left.was_told_to_stop:
        return None
    return _in_doubt(left)


def _in_doubt(left: Left) -> Success | None:
    if crash := _CRASHES.get(left.signal):
        # Its log is no measure: its stacks were written as it died.
        is_at_its_end = abs(left.ended_ns - left.newest_ns) <= _AT_ITS_END_NS
        return Success(doubt=f"{crash} after its last write") if is_at_its_end else None
    name = _SENT.get(left.signal)
    # Later, and not as late: two writes of one tick of the clock have one time.
    if name and left.names_last and left.newest_ns > left.logged_ns:
        return Success(doubt=f"{name} after its last epoch, by its log alone")
    return None


def doubts(rc: int, oom_kills: int, other_epochs: str) -> list[str]:
    """What is doubtful of a success, whatever ended it; `other_epochs` than were asked for."""
    kills = "a kill" if oom_kills == 1 else f"{oom_kills} kills"
    memory = f"exit code 0, but {kills} for memory while it ran" if oom_kills and not rc else ""
    return [text for text in (memory, other_epochs) if text]
