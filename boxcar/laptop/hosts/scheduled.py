"""What a scheduler says of a queue whose agent it has not started: that it waits, and for what.

Pure. Some reasons pass by themselves; for others somebody has to change something, and a job that
waits for them waits for ever.
"""

from __future__ import annotations

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

# Slurm's words, or how they begin: what a person has to do, by its sentence.
_NEEDS = {
    "PartitionTimeLimit": mark(
        "slurm: {{time: …}} is longer than the partition allows: shorten it"
    ),
    "PartitionNodeLimit": mark("the partition has no room for so much: ask for less"),
    "PartitionDown": mark("the partition is not in use: ask the site, or name another one"),
    "PartitionInactive": mark("the partition is not in use: ask the site, or name another one"),
    "QOSMax": mark("a limit of the QOS: ask for less, or name another qos"),
    "QOSGrp": mark("a limit of the QOS: ask for less, or name another qos"),
    "QOSMin": mark("a limit of the QOS: ask for less, or name another qos"),
    "QOSNotAllowed": mark("the QOS may not be used here, or is not known: name another one"),
    "InvalidQOS": mark("the QOS may not be used here, or is not known: name another one"),
    "InvalidAccount": mark("the account may not be used here, or is not known: name another one"),
    "AccountNotAllowed": mark(
        "the account may not be used here, or is not known: name another one"
    ),
    "Assoc": mark("a limit of the account: ask for less, or ask the site"),
    "BadConstraints": mark(
        "no node has what was asked for: see gres, mem and constraint in job.yaml"
    ),
    "ReqNodeNotAvail": mark(
        "the nodes that would do are not available: ask the site, or ask for others"
    ),
    "DependencyNeverSatisfied": mark("it depends on a job that failed"),
    "JobHeldUser": mark("it was held: scontrol release it on the login node"),
    "JobHeldAdmin": mark("an administrator holds it: ask the site"),
    "job requeued in held state": mark(
        "it was queued again and held: scontrol release it, or ask the site"
    ),
    "launch failed requeued held": mark(
        "a node could not start it: scontrol release it, or ask the site"
    ),
    "JobHoldMaxRequeue": mark(
        "it was queued again too often: scontrol release it, or ask the site"
    ),
}


@dataclass(frozen=True)
class Scheduled:
    """`start_at` is when the scheduler expects to start it (UTC), if it says so."""

    task: str
    reason: str
    start_at: str | None = None

    @property
    def need(self) -> Sentence | None:
        """What a person has to do; None where time alone helps."""
        spelled = self.reason.replace("_", " ")
        found = [name for word, name in _NEEDS.items() if spelled.startswith(word)]
        return Sentence(found[0]) if found else None

    @property
    def is_explained(self) -> bool:
        """Whether Slurm has considered it yet."""
        return self.reason not in ("", "None")

    @property
    def sentence(self) -> Sentence:
        about = {"task": self.task, "reason": self.reason}
        if need := self.need:
            return _("its job {task} waits in Slurm ({reason}): {need}", **about, need=need)
        if self.start_at:
            return _(
                "its job {task} waits in Slurm ({reason}); Slurm expects to start it at {at}",
                **about,
                at=self.start_at,
            )
        return _("its job {task} waits in Slurm ({reason})", **about)
