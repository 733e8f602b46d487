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
        mark("it ended with 0 and did not write all artifacts"),
        mark(
            "write them into {{out}}; or correct artifacts: in job.yaml alone and launch: what it "
            "left is judged anew, not trained again"
        ),
    ),
    OwnFailure(
        "UNFIT",
        Course.ASK,
        mark("its result is there and cannot be published as it is"),
        mark("put right what it says and launch: it is judged anew, not trained again"),
    ),
    OwnFailure(
        "UNCHECKED",
        Course.ASK,
        mark("nobody could look into its result"),
        mark("put right what the check needs and launch: it is judged anew"),
    ),
    OwnFailure(
        "BAD-ART",
        Course.FIX_CODE,
        mark("an artifact does not load, or holds NaN or lacks a key"),
        mark("look at what the script writes at its end"),
    ),
    OwnFailure(
        "LOST",
        Course.RESUME_SAME,
        mark("its result was lost with the scratch before it was published"),
        mark("nothing: it is trained again"),
    ),
    OwnFailure(
        "GONE",
        Course.RESUME_SAME,
        mark("the attempt ended without a record: it was killed"),
        mark("nothing: it is tried again from its checkpoint"),
    ),
    OwnFailure(
        "WRAPPER",
        Course.STOP_QUEUE,
        mark("run_one.sh ended before the launcher started"),
        mark("look at the hook and at training_python on the box"),
    ),
    OwnFailure(
        "CODE",
        Course.FIX_CODE,
        mark("a file of the release was changed while it ran"),
        mark("write into {{out}}, or into files of its own"),
    ),
    OwnFailure(
        "NOCFG",
        Course.FIX_CONFIG,
        mark("its line cannot be run as it is"),
        mark("correct the line, and push"),
    ),
    OwnFailure(
        "RANKS",
        Course.FIX_CONFIG,
        mark("another number of ranks was formed than was asked for"),
        mark("set nproc_per_node, and leave it out of the command"),
    ),
    OwnFailure(
        "RESUME",
        Course.RESUME_SAME,
        mark("the newest checkpoint may not load: an older one is tried"),
        mark("nothing; if the older one fails too, the newest is put back"),
    ),
    OwnFailure(
        "EXIT42",
        Course.FIX_CODE,
        mark("the script asked not to be retried (exit code 42)"),
        mark("fix what its log says, and push"),
    ),
    OwnFailure(
        "EXIT43",
        Course.STOP_QUEUE,
        mark("the script asked for the queue to stop (exit code 43)"),
        mark("fix what its log says, and launch"),
    ),
    OwnFailure(
        "EXIT3",
        Course.FREE_SPACE,
        mark("the script found too little disk space (exit code 3)"),
        mark("free some, and launch"),
    ),
    OwnFailure(
        "EXIT75",
        Course.RESUME_SAME,
        mark("the script said: try again later (exit code 75)"),
        mark("nothing: it is tried again"),
    ),
    OwnFailure(
        "EXIT85",
        Course.PREEMPTED,
        mark("it was asked to leave, or left with exit code 85 and a newer checkpoint"),
        mark("launch again when there is a box"),
    ),
    OwnFailure(
        "UNASKED",
        Course.FIX_CODE,
        mark("it left with exit code 85 unasked, and saved no checkpoint"),
        mark("save what resume: names before you leave with 85, or leave with another code"),
    ),
    OwnFailure(
        "RANKS-ALIVE",
        Course.RESUME_SAME,
        mark("the launcher ended with 0 while ranks of it still ran"),
        mark("nothing: it is tried again; was the launcher's own process killed?"),
    ),
)
