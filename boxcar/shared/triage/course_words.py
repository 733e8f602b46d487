"""The classes of failures in words: what each is called, what follows, what to do. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course

# What a class is called where there is room for two words.
NAMES = {
    Course.RESUME_SAME: mark("tried again"),
    Course.WAIT_NETWORK: mark("network"),
    Course.OTHER_BOX: mark("bad box"),
    Course.FREE_SPACE: mark("disk full"),
    Course.FIX_CONFIG: mark("fix the config"),
    Course.FIX_CODE: mark("fix the code"),
    Course.FIX_DATA: mark("fix the data"),
    Course.OUT_OF_MEMORY: mark("out of memory"),
    Course.PREEMPTED: mark("preempted"),
    Course.TIME_LIMIT: mark("time is up"),
    Course.STOP_QUEUE: mark("stops the queue"),
    Course.ASK: mark("needs you"),
}
FOLLOWS = {
    Course.RESUME_SAME: mark(
        "the same is tried again, from its newest checkpoint where it has one"
    ),
    Course.WAIT_NETWORK: mark(
        "it is tried again after longer waits; other cells go on meanwhile, and no queue is stopped"
    ),
    Course.OTHER_BOX: mark(
        "this box takes no more cells; those that wait can be moved to another queue"
    ),
    Course.FREE_SPACE: mark(
        "it is tried again once there is room; the queue ends with 3 where there is none for long"
    ),
    Course.FIX_CONFIG: mark(
        "the cell fails and the queue goes on; as it is, it would fail in the same way"
    ),
    Course.FIX_CODE: mark("the cell fails; two alike in a row within a minute stop the queue"),
    Course.FIX_DATA: mark(
        "the cell fails and the queue goes on; as it is, it would fail in the same way"
    ),
    Course.OUT_OF_MEMORY: mark(
        "the cell fails and is never tried again as it is; the queue goes on"
    ),
    Course.PREEMPTED: mark("it resumes from its checkpoint"),
    Course.TIME_LIMIT: mark(
        "the cell fails; it resumes from its checkpoint where the next launch gives it more time"
    ),
    Course.STOP_QUEUE: mark("the queue stops: each cell would fail alike"),
    Course.ASK: mark(
        "the cell fails and the queue goes on; it needs a decision or a credential of yours"
    ),
}
WHAT_TO_DO = {
    Course.RESUME_SAME: mark("nothing, while it is tried again"),
    Course.WAIT_NETWORK: mark("nothing, while it waits"),
    Course.OTHER_BOX: mark("rent another box, and move its cells there"),
    Course.FREE_SPACE: mark("free some space, or take a larger disk"),
    Course.FIX_CONFIG: mark("correct the config or the line"),
    Course.FIX_CODE: mark("fix the script, and try it here first"),
    Course.FIX_DATA: mark("put the data right"),
    Course.OUT_OF_MEMORY: mark("go down the ladder"),
    Course.PREEMPTED: mark("launch again when there is a box"),
    Course.TIME_LIMIT: mark("give it more time: time: in job.yaml"),
    Course.STOP_QUEUE: mark("put the box right, and launch again"),
    Course.ASK: mark("say what it needs to know"),
}
