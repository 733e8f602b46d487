"""What a scheduler says of a queue whose agent it has not started: that it waits, and for what.

Pure. Some reasons pass by themselves; for others somebody has to change something, and a job that
waits for them waits for ever.
"""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.record import dataclass

# Slurm's words, or how they begin: what a person has to do, by its sentence.
_NEEDS = {
    "PartitionTimeLimit": "condition.slurm_time_limit",
    "PartitionNodeLimit": "condition.slurm_node_limit",
    "PartitionDown": "condition.slurm_partition_off",
    "PartitionInactive": "condition.slurm_partition_off",
    "QOSMax": "condition.slurm_qos_limit",
    "QOSGrp": "condition.slurm_qos_limit",
    "QOSMin": "condition.slurm_qos_limit",
    "QOSNotAllowed": "condition.slurm_qos_unknown",
    "InvalidQOS": "condition.slurm_qos_unknown",
    "InvalidAccount": "condition.slurm_account_unknown",
    "AccountNotAllowed": "condition.slurm_account_unknown",
    "Assoc": "condition.slurm_account_limit",
    "BadConstraints": "condition.slurm_constraints",
    "ReqNodeNotAvail": "condition.slurm_not_available",
    "DependencyNeverSatisfied": "condition.slurm_dependency",
    "JobHeldUser": "condition.slurm_held_by_user",
    "JobHeldAdmin": "condition.slurm_held_by_admin",
    "job requeued in held state": "condition.slurm_requeued_held",
    "launch failed requeued held": "condition.slurm_launch_failed",
    "JobHoldMaxRequeue": "condition.slurm_requeued_too_often",
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
            return Sentence("condition.slurm_is_held", **about, need=need)
        if self.start_at:
            return Sentence("condition.slurm_waits_until", **about, at=self.start_at)
        return Sentence("condition.slurm_waits", **about)
