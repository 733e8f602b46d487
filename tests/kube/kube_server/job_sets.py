"""JobSet: its controller, which makes Jobs and a headless service, and says how the set ended.

From its published API (jobset.x-k8s.io/v1alpha2, release 0.12), for what Boxcar creates and no
more: no restarts, no order, no exclusive placement.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from .events import tell
from .kinds import BY_PLURAL, Kind
from .kubelet import set_condition
from .store import ApiError, Object, Store

_HEAD = "jobset.sigs.k8s.io"


def finished(one: Object) -> bool:
    return any(
        condition["type"] in ("Completed", "Failed") and condition["status"] == "True"
        for condition in one["status"].get("conditions", [])
    )


@dataclass
class JobSetController:
    store: Store
    admit: Callable[[Kind, Object], Object]

    def reconcile(self) -> None:
        for one in self.store.all("jobsets"):
            if not one["metadata"].get("deletionTimestamp"):
                before = copy.deepcopy(one["status"])
                self._set(one)
                if one["status"] != before:
                    self.store.touch("jobsets", one)

    def _set(self, one: Object) -> None:
        uid = one["metadata"]["uid"]
        jobs = [child for plural, child in self.store.owned(uid) if plural == "jobs"]
        ended = {kind: [job for job in jobs if _is(job, kind)] for kind in ("Complete", "Failed")}
        if finished(one):
            for job in jobs:
                over = job in ended["Complete"] or job in ended["Failed"]
                if not over and not job["metadata"].get("deletionTimestamp"):
                    self.store.delete("jobs", job)
            return
        if ended["Failed"]:
            said = f"jobset failed due to one or more job failures: {_name(ended['Failed'][0])}"
            set_condition(one, "Failed", "True", "FailedJobs", said)
            tell(self.store, one, "Warning", "FailedJobs", said)
            return
        if ended["Complete"] and self._is_success(one, ended["Complete"]):
            said = "jobset completed successfully"
            set_condition(one, "Completed", "True", "AllJobsCompleted", said)
            tell(self.store, one, "Normal", "AllJobsCompleted", said)
            return
        self._make_service(one)
        there = {_name(job) for job in jobs}
        for replicated in one["spec"]["replicatedJobs"]:
            for index in range(replicated["replicas"]):
                if f"{_name(one)}-{replicated['name']}-{index}" not in there:
                    self._make_job(one, replicated, index)
        is_suspended = bool(one["spec"].get("suspend"))
        for job in jobs:
            if job["spec"]["suspend"] != is_suspended:
                job["spec"]["suspend"] = is_suspended
                self.store.touch("jobs", job)

    @staticmethod
    def _is_success(one: Object, complete: list[Object]) -> bool:
        policy = one["spec"]["successPolicy"]
        targets = policy.get("targetReplicatedJobs") or []
        wanted = [
            replicated
            for replicated in one["spec"]["replicatedJobs"]
            if not targets or replicated["name"] in targets
        ]
        names = {replicated["name"] for replicated in wanted}
        key = f"{_HEAD}/replicatedjob-name"
        have = sum(job["metadata"]["labels"][key] in names for job in complete)
        many = sum(replicated["replicas"] for replicated in wanted)
        return have >= (1 if policy["operator"] == "Any" else many)

    def _make_service(self, one: Object) -> None:
        network, name = one["spec"]["network"], _domain(one)
        where = one["metadata"]["namespace"]
        if not network["enableDNSHostnames"] or self.store.find("services", where, name):
            return
        spec = {
            "clusterIP": "None",
            "selector": {f"{_HEAD}/jobset-name": _name(one)},
            "publishNotReadyAddresses": network["publishNotReadyAddresses"],
        }
        meta = {"name": name, "namespace": where, "ownerReferences": [_owner(one)]}
        made = {"kind": "Service", "apiVersion": "v1", "metadata": meta, "spec": spec}
        self.store.create("services", self.admit(BY_PLURAL["services"], made))

    def _make_job(self, one: Object, replicated: Object, index: int) -> None:
        template = copy.deepcopy(replicated["template"])
        about = {
            f"{_HEAD}/jobset-name": _name(one),
            f"{_HEAD}/jobset-uid": one["metadata"]["uid"],
            f"{_HEAD}/replicatedjob-name": replicated["name"],
            f"{_HEAD}/replicatedjob-replicas": str(replicated["replicas"]),
            f"{_HEAD}/restart-attempt": "0",
            f"{_HEAD}/job-index": str(index),
        }
        meta, spec = template.get("metadata", {}), template["spec"]
        inner = spec["template"].setdefault("metadata", {})
        for each in (meta, inner):
            each["labels"] = {**each.get("labels", {}), **about}
            each["annotations"] = {**each.get("annotations", {}), **about}
        if one["spec"]["network"]["enableDNSHostnames"]:
            spec["template"]["spec"]["subdomain"] = _domain(one)
        spec["suspend"] = bool(one["spec"].get("suspend"))
        meta |= {
            "name": f"{_name(one)}-{replicated['name']}-{index}",
            "namespace": one["metadata"]["namespace"],
            "ownerReferences": [_owner(one)],
        }
        job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": meta, "spec": spec}
        try:
            self.store.create("jobs", self.admit(BY_PLURAL["jobs"], job))
        except ApiError as error:
            tell(self.store, one, "Warning", "JobCreationFailed", error.message)


def _name(one: Object) -> str:
    return str(one["metadata"]["name"])


def _domain(one: Object) -> str:
    return str(one["spec"]["network"].get("subdomain") or _name(one))


def _owner(one: Object) -> Object:
    meta = {"name": _name(one), "uid": one["metadata"]["uid"]}
    about = {"apiVersion": one["apiVersion"], "kind": one["kind"], "controller": True}
    return about | meta | {"blockOwnerDeletion": True}


def _is(job: Object, kind: str) -> bool:
    return any(
        one["type"] == kind and one["status"] == "True"
        for one in job["status"].get("conditions", [])
    )
