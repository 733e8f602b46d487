"""The Job controller: one pod after the other until the Job is done or may not try again."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from .events import tell
from .kinds import BY_PLURAL, Kind
from .kubelet import ENDED, set_condition
from .store import ApiError, Object, Store, now

TRACKED = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_LONGEST_WAIT = 36  # times the first one


@dataclass
class JobController:
    store: Store
    admit: Callable[[Kind, Object], Object]
    first_wait_s: float = 0.1  # 10 s in a real cluster
    may_create_at: dict[str, float] = field(default_factory=dict)

    def reconcile(self) -> None:
        for job in self.store.all("jobs"):
            before = copy.deepcopy(job["status"])
            self._job(job)
            if job["status"] != before:
                self.store.touch("jobs", job)
        for pod in self.store.all("pods"):
            owner = pod["metadata"].get("ownerReferences", [{}])[0].get("uid", "")
            if owner and not self.store.exists(owner):
                self._release(pod)

    def _job(self, job: Object) -> None:
        uid = job["metadata"]["uid"]
        pods = [one for plural, one in self.store.owned(uid) if plural == "pods"]
        self._count(job, pods)
        if job["metadata"].get("deletionTimestamp"):
            for pod in pods:
                self._release(pod)
            return
        for pod in pods:
            if pod["metadata"].get("deletionTimestamp") and not pod["spec"].get("nodeName"):
                self._release(pod)
        spec, status = job["spec"], job["status"]
        ends = self._verdict(job)
        active = [one for one in pods if one["status"].get("phase") not in ENDED]
        if spec["suspend"] or ends is not None:
            for one in active:
                if not one["metadata"].get("deletionTimestamp"):
                    self._release(one)  # first: what the controller itself ends is no failure
                    self.store.delete("pods", one)
        if ends is not None:
            self._end(job, ends, running=bool(active))
        elif spec["suspend"]:
            if not finished(job):
                set_condition(job, "Suspended", "True", "JobSuspended", "Job suspended")
        elif not finished(job):
            if any(one["type"] == "Suspended" for one in status.get("conditions", [])):
                set_condition(job, "Suspended", "False", "JobResumed", "Job resumed")
            status.setdefault("startTime", now())
            self._create_missing(job, active)
        self._tell_numbers(job, pods)

    # -- what has ended

    def _count(self, job: Object, pods: list[Object]) -> None:
        """Each ended pod is counted once, and then let go."""
        for pod in pods:
            if pod["status"].get("phase") not in ENDED:
                continue
            if TRACKED not in pod["metadata"].get("finalizers", []):
                continue
            status = job["status"]
            if pod["status"]["phase"] == "Succeeded":
                status["succeeded"] = status.get("succeeded", 0) + 1
                if (index := _index(pod)) is not None:
                    done = {*status.get("completedIndexes", "").split(","), str(index)} - {""}
                    status["completedIndexes"] = ",".join(sorted(done, key=int))
            elif (action := self._action(job, pod)) != "Ignore":
                status["failed"] = status.get("failed", 0) + 1
                times = min(2 ** (status["failed"] - 1), _LONGEST_WAIT)
                self.may_create_at[job["metadata"]["uid"]] = _clock_s() + self.first_wait_s * times
                if action == "FailJob":
                    said = f"Container of pod {pod['metadata']['name']} failed: FailJob"
                    set_condition(job, "FailureTarget", "True", "PodFailurePolicy", said)
            # The count is in the store before the pod may go.
            self.store.touch("jobs", job)
            self._release(pod)

    def _release(self, pod: Object) -> None:
        finalizers = pod["metadata"].get("finalizers", [])
        if TRACKED in finalizers:
            finalizers.remove(TRACKED)
            self.store.touch("pods", pod)

    @staticmethod
    def _action(job: Object, pod: Object) -> str:
        for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules", []):
            if _matches(rule, pod):
                return str(rule["action"])
        return "Count"

    @staticmethod
    def _verdict(job: Object) -> tuple[str, str, str] | None:
        """Type, reason and message of what ends the Job; None: it goes on, or has ended."""
        spec, status = job["spec"], job["status"]
        if finished(job):
            return None
        for one in status.get("conditions", []):
            if one["type"] == "FailureTarget":
                return "Failed", one["reason"], one["message"]
        if status.get("succeeded", 0) >= spec["completions"]:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        if status.get("failed", 0) > spec["backoffLimit"]:
            said = "Job has reached the specified backoff limit"
            return "Failed", "BackoffLimitExceeded", said
        return None

    def _end(self, job: Object, ends: tuple[str, str, str], *, running: bool) -> None:
        """First what it will be; then, when no pod runs any more, what it is."""
        kind, reason, message = ends
        early = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        set_condition(job, early, "True", reason, message)
        if running:
            return
        set_condition(job, kind, "True", reason, message)
        if kind == "Complete":
            job["status"]["completionTime"] = now()
        tell(self.store, job, "Normal" if kind == "Complete" else "Warning", reason, message)

    # -- what is to run

    def _create_missing(self, job: Object, active: list[Object]) -> None:
        spec, uid = job["spec"], job["metadata"]["uid"]
        counted = active
        if spec["podReplacementPolicy"] != "Failed":
            counted = [one for one in active if not one["metadata"].get("deletionTimestamp")]
        left = spec["completions"] - job["status"].get("succeeded", 0)
        if _clock_s() < self.may_create_at.get(uid, 0):
            return
        many = min(spec["parallelism"], left) - len(counted)
        if spec["completionMode"] != "Indexed":
            for _ in range(many):
                self._create(job)
            return
        done = job["status"].get("completedIndexes", "").split(",")
        taken = {_index(one) for one in counted}
        free = (n for n in range(spec["completions"]) if n not in taken and str(n) not in done)
        for index in itertools.islice(free, many):
            self._create(job, index)

    def _create(self, job: Object, index: int | None = None) -> None:
        """A pod for the Job; of an Indexed one it has its number, and a host name by that."""
        meta, template = job["metadata"], copy.deepcopy(job["spec"]["template"])
        head = meta["name"]
        if index is not None:
            head = f"{meta['name']}-{index}"
            template["spec"]["hostname"] = head
            inner = template.setdefault("metadata", {})
            for kept in ("labels", "annotations"):
                inner[kept] = {**(inner.get(kept) or {}), INDEX: str(index)}
            for one in template["spec"]["containers"]:
                number = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
                one["env"] = [*one.get("env", []), number]
        labels = template.get("metadata", {}).get("labels") or {}
        own = {"controller-uid": meta["uid"], "job-name": meta["name"]}
        owner = {
            **{"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]},
            **{"controller": True, "blockOwnerDeletion": True},
        }
        pod = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "generateName": f"{head}-",
                "namespace": meta["namespace"],
                "labels": {
                    **labels,
                    **own,
                    **{f"batch.kubernetes.io/{name}": value for name, value in own.items()},
                },
                "annotations": template.get("metadata", {}).get("annotations") or {},
                "ownerReferences": [owner],
                "finalizers": [TRACKED],
            },
            "spec": template["spec"],
        }
        try:
            made = self.store.create("pods", self.admit(BY_PLURAL["pods"], pod))
        except ApiError as error:
            said = f"Error creating: {error.message}"
            tell(self.store, job, "Warning", "FailedCreate", said)
            self.may_create_at[meta["uid"]] = _clock_s() + self.first_wait_s
            return
        said = f"Created pod: {made['metadata']['name']}"
        tell(self.store, job, "Normal", "SuccessfulCreate", said)

    @staticmethod
    def _tell_numbers(job: Object, pods: list[Object]) -> None:
        active = [one for one in pods if one["status"].get("phase") not in ENDED]
        terminating = [one for one in active if one["metadata"].get("deletionTimestamp")]
        ready = [
            one
            for one in active
            for condition in one["status"].get("conditions", [])
            if condition["type"] == "Ready" and condition["status"] == "True"
        ]
        job["status"].update(terminating=len(terminating), ready=len(ready))
        job["status"].pop("active", None)
        if len(active) > len(terminating):
            job["status"]["active"] = len(active) - len(terminating)


def _index(pod: Object) -> int | None:
    number = (pod["metadata"].get("annotations") or {}).get(INDEX)
    return None if number is None else int(number)


def _clock_s() -> float:
    return asyncio.get_running_loop().time()


def finished(job: Object) -> bool:
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True"
        for one in job["status"].get("conditions", [])
    )


def _matches(rule: Object, pod: Object) -> bool:
    if (codes := rule.get("onExitCodes")) is not None:
        for one in pod["status"].get("containerStatuses", []):
            code = one["state"].get("terminated", {}).get("exitCode", 0)
            if codes.get("containerName") not in (None, one["name"]) or code == 0:
                continue
            if (code in codes["values"]) == (codes["operator"] == "In"):
                return True
        return False
    have = {(one["type"], one["status"]) for one in pod["status"].get("conditions", [])}
    return any(
        (one["type"], one.get("status", "True")) in have for one in rule.get("onPodConditions", [])
    )
