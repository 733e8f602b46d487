"""Manifests that the tests of the server apply, and how their Jobs end."""

from __future__ import annotations

import contextlib
from typing import Any

from kube_cluster import KubeCluster
from waiting import until

# Process 1 of a container hears SIGTERM only if it says so.
WAITS = "trap 'exit 143' TERM; sleep 600 & wait"


def container(script: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "python:3.11", "command": ["sh", "-c", script], **more}


def job(name: str, script: str, *, pod: Any = None, main: Any = None, **spec: Any) -> Any:
    """One pod that runs a line of shell and is not tried again, unless `spec` says otherwise."""
    template = {"restartPolicy": "Never", "containers": [container(script, **(main or {}))]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "spec": {"terminationGracePeriodSeconds": 1, **template, **(pod or {})},
            },
            **spec,
        },
    }


def claim(name: str, mode: str = "ReadWriteMany", storage_class: str = "shared") -> Any:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": [mode],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def mounted(name: str, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a pod and its container say of a claim: volumes, volumeMounts."""
    volume = {"name": "tier", "persistentVolumeClaim": {"claimName": name}}
    return {"volumes": [volume]}, {"volumeMounts": [{"name": "tier", "mountPath": path}]}


def ended(kube: KubeCluster, name: str) -> str:
    """How a Job ended: the condition with its reason."""

    def look() -> str:
        for one in kube.get("job", name)["status"].get("conditions", []):
            if one["type"] in ("Complete", "Failed"):
                return f"{one['type']} {one['reason']}"
        return ""

    return until(look, lambda: kube.kubectl("get", "pods,events", "-o", "yaml"))


@contextlib.contextmanager
def applied(kube: KubeCluster, *objects: Any) -> Any:
    """Everything goes again, and has gone when the test ends."""
    kube.apply(*objects)
    try:
        yield
    finally:
        names = [f"{one['kind']}/{one['metadata']['name']}" for one in objects]
        kube.kubectl("delete", *names, "--ignore-not-found", "--cascade=foreground", "--wait")
