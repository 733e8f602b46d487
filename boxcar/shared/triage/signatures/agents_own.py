"""Failures that the agent knows by itself, without a word of a log. Data; ids stand in journals."""

from __future__ import annotations

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course


@dataclass(frozen=True)
class OwnFailure:
    id: str
    course: Course
    words: str
    todo: str


AGENTS_OWN = (
    OwnFailure(
        "NO-ART",
        Course.FIX_CODE,
        mark("it exited with 0, but artifacts are missing"),
        mark(
            "write them to {{out}}; or correct only artifacts: in job.yaml and launch: the result "
            "is re-checked without retraining"
        ),
    ),
    OwnFailure(
        "UNFIT",
        Course.ASK,
        mark("its result exists but cannot be published as it is"),
        mark("fix the cause and launch: the result is re-checked without retraining"),
    ),
    OwnFailure(
        "UNCHECKED",
        Course.ASK,
        mark("its result could not be checked"),
        mark("fix what the check needs and launch: the result is re-checked"),
    ),
    OwnFailure(
        "BAD-ART",
        Course.FIX_CODE,
        mark("an artifact does not load, holds NaN or lacks a key"),
        mark("check what the script writes at the end"),
    ),
    OwnFailure(
        "LOST",
        Course.RESUME_SAME,
        mark("its result was lost with scratch before it was published"),
        mark("nothing: it is retrained"),
    ),
    OwnFailure(
        "GONE",
        Course.RESUME_SAME,
        mark("the attempt ended without a record: it was killed"),
        mark("nothing: it is retried from its checkpoint"),
    ),
    OwnFailure(
        "WRAPPER",
        Course.STOP_QUEUE,
        mark("run_one.sh ended before the launcher started"),
        mark("check the hook and training_python on the box"),
    ),
    OwnFailure(
        "SETUP",
        Course.STOP_QUEUE,
        mark("the set-up of its box failed"),
        mark("read the log that the message names, correct setup: or requirements: and launch"),
    ),
    OwnFailure(
        "CODE",
        Course.FIX_CODE,
        mark("a file of the release changed while it ran"),
        mark("write to {{out}} or to files that are not part of the release"),
    ),
    OwnFailure(
        "NOCFG",
        Course.FIX_CONFIG,
        mark("its queue line cannot run as written"),
        mark("correct the line and push"),
    ),
    OwnFailure(
        "RANKS",
        Course.FIX_CONFIG,
        mark("the number of ranks differs from the one requested"),
        mark("set nproc_per_node and remove it from the command"),
    ),
    OwnFailure(
        "RESUME",
        Course.RESUME_SAME,
        mark("the newest checkpoint may not load: an older one is tried"),
        mark("nothing; if the older one fails too, the newest is restored"),
    ),
    OwnFailure(
        "EXIT42",
        Course.FIX_CODE,
        mark("the script asked not to be retried (exit code 42)"),
        mark("fix what its log says and push"),
    ),
    OwnFailure(
        "EXIT43",
        Course.STOP_QUEUE,
        mark("the script asked for the queue to stop (exit code 43)"),
        mark("fix what its log says and launch"),
    ),
    OwnFailure(
        "EXIT3",
        Course.FREE_SPACE,
        mark("the script found too little disk space (exit code 3)"),
        mark("free some space and launch"),
    ),
    OwnFailure(
        "EXIT75",
        Course.RESUME_SAME,
        mark("the script asked to be retried later (exit code 75)"),
        mark("nothing: it is retried"),
    ),
    OwnFailure(
        "EXIT85",
        Course.PREEMPTED,
        mark("it was asked to stop, or exited with code 85 and a newer checkpoint"),
        mark("launch again once a box is available"),
    ),
    OwnFailure(
        "UNASKED",
        Course.FIX_CODE,
        mark("it exited with code 85 without being asked and saved no checkpoint"),
        mark("save what resume: names before exiting with 85, or use another exit code"),
    ),
    OwnFailure(
        "RANKS-ALIVE",
        Course.RESUME_SAME,
        mark("the launcher exited with 0 while its ranks were still running"),
        mark("nothing: it is retried; check whether the launcher process was killed"),
    ),
    OwnFailure(
        "STALLED",
        Course.RESUME_SAME,
        mark(
            "it made no progress for far longer than other cells of this run, and was "
            "ended (when_stalled: end)"
        ),
        mark("look at the stacks in its log and in gauges/stalled"),
    ),
    OwnFailure(
        "NAN-METRIC",
        Course.FIX_CONFIG,
        mark("a number that the job names became NaN, and it was ended (when_nan: end)"),
        mark("lower the learning rate, clip gradients or use bf16, then push"),
    ),
)
