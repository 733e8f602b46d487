"""How a queue begins on Kubernetes: its Secret, then its Job, or the JobSet that has the Job.

Each may be there already, from a launch that was killed or from another one at this moment: what is
at work is left alone, and what has ended is made anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.kubectl_errors import AlreadyThere
from boxcar.laptop.places import kube_claim, kube_ends, kube_jobsets
from boxcar.laptop.places.site import StartedOrWhy
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import kube_jobset, kube_objects
from boxcar.laptop.run import kube_pods
from boxcar.shared.errors import BoxcarError, TemporaryError
from boxcar.shared.wire import run_asks

# How a queue was started that is in the cluster's hands now.
CREATED = "kubectl"
# A controller sees the end of a pod within a second or two.
FINISHED_WITHIN_S = 60.0
_LOOK_EVERY_S = 1.0


class KubeStarts:
    """`read` gives the bytes of a file on the claim."""

    def __init__(
        self,
        kubectl: Kubectl,
        owner: kube_objects.Owner,
        project: Project,
        read: Callable[[str], bytes],
    ) -> None:
        self._kubectl, self._owner, self._project, self._read = kubectl, owner, project, read
        self._plan, self._options = project.plan, project.profile.kubernetes

    def start(self, starts: Mapping[str, run_asks.Start]) -> StartedOrWhy:
        """A Job for each. One that is there and has not ended is left alone."""
        started: dict[str, str] = {}
        errors: dict[str, Exception] = {}
        version: tuple[int, int] | None = None
        for queue, start in starts.items():
            try:
                version = version or self._kubectl.server_version()
                started[queue] = self._submit(queue, start, version)
            except (BoxcarError, OSError) as error:
                errors[queue] = error
        return started, errors

    def _submit(self, queue: str, start: run_asks.Start, version: tuple[int, int]) -> str:
        kube_jobsets.require(self._kubectl, self._plan, queue)
        there = self._settled(queue)
        if any(kube_pods.is_at_work(one) for one in there):
            return run_asks.RUNNING
        kube_ends.delete(self._kubectl, self._owner, list(filter(_goes_first, there)))
        credentials = self._plan.box(self._plan.queues[queue]).credentials
        content = self._read(credentials)
        self._kubectl.apply(kube_objects.secret(self._owner, queue, credentials, content))
        begin = (str(start.start_index), *([start.start_cell] if start.start_cell else []))
        made = self._made(queue, start.digest, begin, version)
        try:
            found = self._created(
                kube_claim.left_to(self._kubectl, self._owner, made, len(self._plan.queues))
            )
        except AlreadyThere:
            return run_asks.RUNNING  # another launch was a moment faster
        if found:
            patch = json.dumps(kube_objects.owned_by(found))
            secret = kube_objects.job_name(self._owner, queue)
            self._kubectl.run("patch", "secret", secret, "--type=merge", "-p", patch)
        return CREATED

    def _settled(self, queue: str) -> list[dict[str, Any]]:
        """Its Jobs and secrets, once a Job whose agent has just ended is called so."""
        kinds = kube_jobsets.kinds(self._kubectl, "jobs,pods,secrets")
        until = time.monotonic() + FINISHED_WITHIN_S
        while True:
            there = kube_ends.of_run(self._kubectl, self._owner, kinds, queue)
            pods = [one for one in there if one["kind"] == "Pod" and kube_jobset.is_agents(one)]
            is_ending = any(map(kube_pods.is_at_work, there)) and kube_pods.will_finish(pods)
            if not is_ending or time.monotonic() > until:
                return [one for one in there if one["kind"] != "Pod"]
            time.sleep(_LOOK_EVERY_S)

    def _created(self, made: kube_objects.Object) -> dict[str, Any] | None:
        """As the cluster has it; None where it has ended and gone in that moment."""
        kind = kube_jobset.KIND if made["kind"] == kube_objects.JOBSET else "job"
        name = str(made["metadata"]["name"])
        try:
            self._kubectl.create(made)
        except TemporaryError:
            # It may have taken effect all the same, and is not asked for twice.
            if self._kubectl.find(kind, name) is None:
                raise
        return self._kubectl.find(kind, name)

    def _made(
        self, queue: str, digest: str, begin: tuple[str, ...], version: tuple[int, int]
    ) -> dict[str, Any]:
        """The queue's Job, or the JobSet that has it."""
        job = self.job(queue, digest, begin, version)
        pods = kube_jobset.pods_of(self._plan, queue)
        return kube_jobset.job_set(self._owner, queue, job, pods) if pods > 1 else job

    def job(
        self, queue: str, digest: str, begin: tuple[str, ...], version: tuple[int, int]
    ) -> dict[str, Any]:
        box = self._plan.box(self._plan.queues[queue])
        return kube_objects.job(
            self._owner,
            queue,
            release=str(self._project.on_tier.release(digest)),
            begin=begin,
            tier=self._plan.durable_dir,
            credentials=box.credentials,
            image=str(self._project.profile.env.image),
            grace_s=self._plan.grace_s,
            options=self._options,
            version=version,
        )


def _goes_first(one: kube_objects.Object) -> bool:
    """A Job goes with its Secret, which would go a moment later and be that of the new Job then. A
    Secret that no Job owns yet is another launch's.
    """
    return one["kind"] != "Secret" or "ownerReferences" in one["metadata"]
