"""What a scheduler says of a queue whose agent it has not started: that it waits, and for what.

Pure. Some reasons pass by themselves; for others somebody has to change something, and a job that
waits for them waits for ever.
"""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.record import dataclass

# Slurm's words, or how they begin: what a person has to do, by its sentence, condition.slurm_NAME.
_NEEDS = {
    "PartitionTimeLimit": "time_limit",
    "PartitionNodeLimit": "node_limit",
    "PartitionDown": "partition_off",
    "PartitionInactive": "partition_off",
    "QOSMax": "qos_limit",
    "QOSGrp": "qos_limit",
    "QOSMin": "qos_limit",
    "QOSNotAllowed": "qos_unknown",
    "InvalidQOS": "qos_unknown",
    "InvalidAccount": "account_unknown",
    "AccountNotAllowed": "account_unknown",
    "Assoc": "account_limit",
    "BadConstraints": "constraints",
    "ReqNodeNotAvail": "not_available",
    "DependencyNeverSatisfied": "dependency",
    "JobHeldUser": "held_by_user",
    "JobHeldAdmin": "held_by_admin",
    "job requeued in held state": "requeued_held",
    "launch failed requeued held": "launch_failed",
    "JobHoldMaxRequeue": "requeued_too_often",
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
        return Sentence(f"condition.slurm_{found[0]}") if found else None

    @property
    def is_explained(self) -> bool:
        """Whether Slurm has considered it yet."""
        return self.reason not in ("", "None")

    @property
    def sentence(self) -> Sentence:
        about = {"task": self.task, "reason": self.reason}
        if need := self.need:
            return Sentence("condition.slurm_is_held", **about, need=need)
        if self.start_at:
            return Sentence("condition.slurm_waits_until", **about, at=self.start_at)
        return Sentence("condition.slurm_waits", **about)
