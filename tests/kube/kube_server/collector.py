"""What goes when its owner goes, and what becomes of pods whose node is gone."""

from __future__ import annotations

from dataclasses import dataclass

from .kubelet import ENDED, set_condition
from .store import Object, Store


@dataclass
class Collector:
    store: Store

    def reconcile(self) -> None:
        for plural, _, _ in list(self.store.objects):
            for one in self.store.all(plural):
                self._one(plural, one)

    def _one(self, plural: str, one: Object) -> None:
        meta = one["metadata"]
        finalizers = meta.get("finalizers", [])
        if meta.get("deletionTimestamp") and "foregroundDeletion" in finalizers:
            children = list(self.store.owned(meta["uid"]))
            for of, child in children:
                if not child["metadata"].get("deletionTimestamp"):
                    self.store.delete(of, child)
            if not children:
                finalizers.remove("foregroundDeletion")
                self.store.touch(plural, one)
        owners = meta.get("ownerReferences", [])
        gone = owners and not any(self.store.exists(owner["uid"]) for owner in owners)
        if gone and not meta.get("deletionTimestamp"):
            self.store.delete(plural, one)
        if plural == "namespaces" and meta.get("deletionTimestamp"):
            self._empty(one)

    def _empty(self, namespace: Object) -> None:
        name, is_empty = namespace["metadata"]["name"], True
        for (plural, where, _), child in list(self.store.objects.items()):
            if where == name:
                is_empty = False
                if not child["metadata"].get("deletionTimestamp"):
                    self.store.delete(plural, child)
        if is_empty and "kubernetes" in namespace["metadata"].get("finalizers", []):
            namespace["metadata"]["finalizers"].remove("kubernetes")
            self.store.touch("namespaces", namespace)


def unreachable(store: Store, node: str) -> None:
    """The node controller has waited long enough: its pods are to be deleted, and stay there."""
    for pod in store.all("pods"):
        if pod["spec"].get("nodeName") == node and pod["status"]["phase"] not in ENDED:
            set_condition(pod, "Ready", "False", "NodeLost")
            said = "Taint manager: deleting due to NoExecute taint"
            set_condition(pod, "DisruptionTarget", "True", "DeletionByTaintManager", said)
            store.delete("pods", pod)


def without_node(store: Store, node: str) -> None:
    """The node itself was deleted: the pods' collector calls its pods failed, and they go."""
    store.remove("nodes", store.get("nodes", "", node))
    for pod in store.all("pods"):
        if pod["spec"].get("nodeName") != node:
            continue
        if pod["status"]["phase"] not in ENDED:
            said = "PodGC: node no longer exists"
            set_condition(pod, "DisruptionTarget", "True", "DeletionByPodGC", said)
            pod["status"]["phase"] = "Failed"
        store.delete("pods", pod, grace_s=0)
