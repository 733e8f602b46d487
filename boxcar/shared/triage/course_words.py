"""The classes of failures in words: what each is called, what follows, what to do. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course

# What a class is called where there is room for two words.
NAMES = {
    Course.RESUME_SAME: mark("retried"),
    Course.WAIT_NETWORK: mark("network"),
    Course.OTHER_BOX: mark("bad box"),
    Course.FREE_SPACE: mark("disk full"),
    Course.FIX_CONFIG: mark("fix the config"),
    Course.FIX_CODE: mark("fix the code"),
    Course.FIX_DATA: mark("fix the data"),
    Course.OUT_OF_MEMORY: mark("out of memory"),
    Course.PREEMPTED: mark("preempted"),
    Course.TIME_LIMIT: mark("time limit"),
    Course.STOP_QUEUE: mark("stops the queue"),
    Course.ASK: mark("needs attention"),
}
FOLLOWS = {
    Course.RESUME_SAME: mark("retried unchanged, from its newest checkpoint if it has one"),
    Course.WAIT_NETWORK: mark(
        "retried after longer waits; other cells run meanwhile, and the queue does not stop"
    ),
    Course.OTHER_BOX: mark(
        "this box takes no more cells; waiting cells can be moved to another queue"
    ),
    Course.FREE_SPACE: mark(
        "retried once there is space; if there is none for long, the queue ends with exit code 3"
    ),
    Course.FIX_CONFIG: mark(
        "the cell fails, and the queue continues; the next launch retries it, changed or not"
    ),
    Course.FIX_CODE: mark(
        "the cell fails; two identical failures in a row within a minute stop the queue"
    ),
    Course.FIX_DATA: mark(
        "the cell fails, and the queue continues; the next launch retries it, changed or not"
    ),
    Course.OUT_OF_MEMORY: mark(
        "the cell fails, and the queue continues; the next launch retries it, changed or not"
    ),
    Course.PREEMPTED: mark("it resumes from its checkpoint"),
    Course.TIME_LIMIT: mark(
        "the cell fails; it resumes from its checkpoint if the next launch gives it more time"
    ),
    Course.STOP_QUEUE: mark("the queue stops: every cell would fail in the same way"),
    Course.ASK: mark(
        "the cell fails and the queue continues; it needs a decision or credentials from you"
    ),
}
WHAT_TO_DO = {
    Course.RESUME_SAME: mark("nothing while it is retried"),
    Course.WAIT_NETWORK: mark("nothing while it waits"),
    Course.OTHER_BOX: mark("rent another box and move the cells there"),
    Course.FREE_SPACE: mark("free some space or use a larger disk"),
    Course.FIX_CONFIG: mark("correct the config or the queue line"),
    Course.FIX_CODE: mark("fix the script and test it here first"),
    Course.FIX_DATA: mark("correct the data"),
    Course.OUT_OF_MEMORY: mark("try the listed steps in order"),
    Course.PREEMPTED: mark("launch again once a box is available"),
    Course.TIME_LIMIT: mark("raise time: in job.yaml"),
    Course.STOP_QUEUE: mark("fix the box and launch again"),
    Course.ASK: mark("provide the decision or credentials it needs"),
}
