"""What a scheduler says of a queue: that its agent waits to start, and for what; how one ended.

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
    "PartitionNodeLimit": mark("the request exceeds the partition's limit: request less"),
    "PartitionDown": mark(
        "the partition is down or inactive: ask the cluster's admins, or use another one"
    ),
    "PartitionInactive": mark(
        "the partition is down or inactive: ask the cluster's admins, or use another one"
    ),
    "QOSMax": mark("QOS limit: request less, or use another qos"),
    "QOSGrp": mark("QOS limit: request less, or use another qos"),
    "QOSMin": mark("QOS limit: request less, or use another qos"),
    "QOSNotAllowed": mark("this QOS is unknown or not allowed here: use another one"),
    "InvalidQOS": mark("this QOS is unknown or not allowed here: use another one"),
    "InvalidAccount": mark("this account is unknown or not allowed here: use another one"),
    "AccountNotAllowed": mark("this account is unknown or not allowed here: use another one"),
    "Assoc": mark("account limit: request less, or ask the cluster's admins"),
    "BadConstraints": mark("no node fits the request: check gres, mem and constraint in job.yaml"),
    "ReqNodeNotAvail": mark(
        "the nodes that fit are not available: ask the cluster's admins, or request others"
    ),
    "DependencyNeverSatisfied": mark("it depends on a job that failed"),
    "JobHeldUser": mark("held: run scontrol release on the login node"),
    "JobHeldAdmin": mark("held by an administrator: ask the cluster's admins"),
    "job requeued in held state": mark(
        "requeued and held: run scontrol release, or ask the cluster's admins"
    ),
    "launch failed requeued held": mark(
        "a node failed to start it: run scontrol release, or ask the cluster's admins"
    ),
    # Kubernetes' words for a pod that will not begin by itself.
    "ImagePullBackOff": mark("the image cannot be pulled: check env: {{image: …}} in the profile"),
    "ErrImagePull": mark("the image cannot be pulled: check env: {{image: …}} in the profile"),
    "InvalidImageName": mark("the image cannot be pulled: check env: {{image: …}} in the profile"),
    "CreateContainerConfigError": mark("the container cannot be made: kubectl describe says why"),
    "OOMKilled": mark("raise kubernetes: {{memory: …}} in the profile, or use less memory"),
    "DeadlineExceeded": mark("the cluster limits how long a Job may run: ask its admins"),
    "BackoffLimitExceeded": mark("it was started again too often: kubectl describe says why"),
    "Suspended": mark("somebody has suspended it: set suspend: false with kubectl edit job"),
    "FailedCreate": mark("the cluster makes no pod for it: ask for less, or raise the quota"),
    "JobHoldMaxRequeue": mark(
        "requeued too often: run scontrol release, or ask the cluster's admins"
    ),
}


@dataclass(frozen=True)
class Scheduled:
    """`start_at` is when the scheduler expects to start it (UTC), if it says so. `kueue`: the queue
    of Kueue that it waits in, whose own word `reason` is then.
    """

    task: str
    reason: str
    start_at: str | None = None
    kueue: str = ""

    @property
    def need(self) -> Sentence | None:
        """What a person has to do; None where time alone helps."""
        return _need(self.reason)

    @property
    def is_explained(self) -> bool:
        """Whether the scheduler has considered it yet."""
        return bool(self.kueue) or self.reason not in ("", "None")

    @property
    def sentence(self) -> Sentence:
        about = {"task": self.task, "reason": self.reason}
        if self.kueue and not self.reason:
            return _("its job {task} waits in Kueue's queue {queue}", **about, queue=self.kueue)
        if self.kueue:
            return _(
                "its job {task} waits in Kueue's queue {queue}: {reason}", **about, queue=self.kueue
            )
        if need := self.need:
            return _("its job {task} waits ({reason}): {need}", **about, need=need)
        if self.start_at:
            return _(
                "its job {task} waits ({reason}); Slurm expects to start it at {at}",
                **about,
                at=self.start_at,
            )
        return _("its job {task} waits ({reason})", **about)


@dataclass(frozen=True)
class JobEnd:
    """How a start of the queue's agent ended, or the job as a whole, where the agent could not say
    so: `what` in the scheduler's words; `at` (UTC).
    """

    at: str
    what: str
    is_of_job: bool = False

    @property
    def sentence(self) -> Sentence:
        told = (
            mark("its job failed: {what}") if self.is_of_job else mark("its last pod ended: {what}")
        )
        said = Sentence(told, what=self.what)
        need = _need(self.what)
        return _("{said}: {need}", said=said, need=need) if need else said


def _need(reason: str) -> Sentence | None:
    spelled = reason.replace("_", " ")
    found = [name for word, name in _NEEDS.items() if spelled.startswith(word)]
    return Sentence(found[0]) if found else None
