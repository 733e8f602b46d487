"""Claims are bound, and pods go to nodes that have room for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .admission import quantity, requested
from .events import tell
from .kubelet import ENDED, claims, set_condition
from .pod_parts import Folders
from .store import Object, Store

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass
class Scheduler:
    store: Store
    folders: Folders

    def reconcile(self) -> None:
        for claim in self.store.all("persistentvolumeclaims"):
            if claim["status"].get("phase") == "Pending":
                self._bind_claim(claim)
        for pod in self.store.all("pods"):
            waits = not pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending"
            if waits and not pod["metadata"].get("deletionTimestamp"):
                self._place(pod)

    def _bind_claim(self, claim: Object) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        name = spec.get("storageClassName") or self._default_class()
        kind = self.store.find("storageclasses", "", name) if name else None
        if kind is None:
            said = f'storageclass.storage.k8s.io "{name}" not found'
            if not name:
                said = "no persistent volumes available for this claim and no storage class is set"
            tell(self.store, claim, "Warning", "ProvisioningFailed", said)
            return
        modes = kind.get("parameters", {}).get("modes", "")
        refused = [mode for mode in spec["accessModes"] if modes and mode not in modes]
        if kind["provisioner"] == "tests/never" or refused:
            said = f"failed to provision volume with StorageClass {name!r}: no such access mode"
            tell(self.store, claim, "Warning", "ProvisioningFailed", said)
            return
        if kind.get("volumeBindingMode") == "WaitForFirstConsumer" and not any(
            meta["name"] in claims(pod) for pod in self.store.all("pods", meta["namespace"])
        ):
            said = "waiting for first consumer to be created before binding"
            tell(self.store, claim, "Normal", "WaitForFirstConsumer", said)
            return
        self.folders.claim(meta["namespace"], meta["name"]).mkdir(parents=True, exist_ok=True)
        spec.update(storageClassName=name, volumeName=f"pvc-{meta['uid']}")
        claim["status"] = {
            "phase": "Bound",
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        }
        self.store.touch("persistentvolumeclaims", claim)

    def _default_class(self) -> str:
        for one in self.store.all("storageclasses"):
            if one["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true":
                return str(one["metadata"]["name"])
        return ""

    def _place(self, pod: Object) -> None:
        why_not = self._claims_missing(pod)
        if not why_not:
            reasons: Counter[str] = Counter()
            nodes = self.store.all("nodes")
            for node in nodes:
                if not (found := self._why_not(pod, node)):
                    pod["spec"]["nodeName"] = node["metadata"]["name"]
                    set_condition(pod, "PodScheduled", "True")
                    self.store.touch("pods", pod)
                    return
                reasons.update(found)
            told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
            why_not = f"0/{len(nodes)} nodes are available: {told}."
        before = list(pod["status"].get("conditions", []))
        set_condition(pod, "PodScheduled", "False", "Unschedulable", why_not)
        if pod["status"]["conditions"] != before:
            tell(self.store, pod, "Warning", "FailedScheduling", why_not)
            self.store.touch("pods", pod)

    def _claims_missing(self, pod: Object) -> str:
        for name in claims(pod):
            claim = self.store.find("persistentvolumeclaims", pod["metadata"]["namespace"], name)
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim["status"].get("phase") != "Bound":
                return "pod has unbound immediate PersistentVolumeClaims."
        return ""

    def _why_not(self, pod: Object, node: Object) -> list[str]:
        labels = node["metadata"].get("labels", {})
        if not ready(node):
            return ["node(s) had untolerated taint {node.kubernetes.io/unreachable: }"]
        if any(labels.get(k) != v for k, v in (pod["spec"].get("nodeSelector") or {}).items()):
            return ["node(s) didn't match Pod's node affinity/selector"]
        there = [
            requested(other["spec"])
            for other in self.store.all("pods")
            if other["spec"].get("nodeName") == node["metadata"]["name"]
            and other["status"]["phase"] not in ENDED
        ]
        reasons = []
        for name, wanted in requested(pod["spec"]).items():
            has = quantity(node["status"]["allocatable"].get(name, 0))
            if wanted and sum(one.get(name, 0) for one in there) + wanted > has:
                reasons.append(f"Insufficient {name}")
        return reasons


def ready(node: Object) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in node["status"].get("conditions", [])
    )
