"""Which kinds the server knows, and how kubectl learns of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    short: str = ""
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As errors say it: `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


KINDS = [
    Kind("", "v1", "Pod", "pods", "po"),
    Kind("", "v1", "Secret", "secrets"),
    Kind("", "v1", "ConfigMap", "configmaps", "cm"),
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc"),
    Kind("", "v1", "Event", "events", "ev"),
    Kind("", "v1", "ResourceQuota", "resourcequotas", "quota"),
    Kind("", "v1", "Service", "services", "svc"),
    Kind("", "v1", "Namespace", "namespaces", "ns", namespaced=False),
    Kind("", "v1", "Node", "nodes", "no", namespaced=False),
    Kind("batch", "v1", "Job", "jobs"),
    Kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
    Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", namespaced=False),
    Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
         namespaced=False),
]  # fmt: skip
BY_PATH = {(one.group, one.version, one.plural): one for one in KINDS}
BY_PLURAL = {one.plural: one for one in KINDS}
# What an admin may install beside; the server knows no schema of it.
CUSTOM = (
    Kind("kueue.x-k8s.io", "v1beta1", "LocalQueue", "localqueues", "queue"),
    Kind("kueue.x-k8s.io", "v1beta1", "Workload", "workloads", "wl"),
)
CUSTOM_VERSIONS = {one.api_version for one in CUSTOM}
SUBRESOURCES = {"pods": ("log", "exec", "eviction", "status"), "jobs": ("status",)}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def install(group: str) -> None:
    """From now on kubectl finds the kinds of that group."""
    for one in CUSTOM:
        if one.group == group and one not in KINDS:
            KINDS.append(one)
            BY_PATH[one.group, one.version, one.plural] = one
            BY_PLURAL[one.plural] = one


def discovery(path: str) -> dict[str, Any] | None:
    """The answer to a path that says what there is; None: it is no such path."""
    groups = sorted({(one.group, one.version) for one in KINDS})
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(name, version) for name, version in groups if name],
        }
    for group, version in groups:
        if path == _root(group, version):
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/{version}" if group else version,
                "resources": _resources(group),
            }
        if group and path == f"/apis/{group}":
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, version)}
    return None


def _group(name: str, version: str) -> dict[str, Any]:
    one = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [one], "preferredVersion": one}


def _root(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _resources(group: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for one in KINDS:
        if one.group != group:
            continue
        row = {
            "name": one.plural,
            "singularName": one.kind.lower(),
            "namespaced": one.namespaced,
            "kind": one.kind,
            "verbs": _VERBS,
        }
        rows.append({**row, "shortNames": [one.short]} if one.short else row)
        for sub in SUBRESOURCES.get(one.plural, ()):
            rows.append(
                {**row, "name": f"{one.plural}/{sub}", "singularName": "", "verbs": ["get"]}
            )
    return rows


def openapi(path: str) -> dict[str, Any] | None:
    """As much of /openapi/v3 as kubectl reads: that a PATCH knows dryRun and fieldValidation."""
    roots = {_root(one.group, one.version).strip("/"): one for one in KINDS}
    if path == "/openapi/v3":
        return {
            "paths": {
                root: {"serverRelativeURL": f"/openapi/v3/{root}?hash=TEST"} for root in roots
            }
        }
    root = path.removeprefix("/openapi/v3/")
    if root == path or root not in roots:
        return None
    known = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    paths: dict[str, Any] = {}
    for one in KINDS:
        if _root(one.group, one.version).strip("/") == root:
            where = f"/{root}/namespaces/{{namespace}}" if one.namespaced else f"/{root}"
            gvk = {"group": one.group, "version": one.version, "kind": one.kind}
            patch = {
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind": gvk,
                "parameters": known,
                "responses": {"200": {"description": "OK"}},
            }
            paths[f"{where}/{one.plural}/{{name}}"] = {"patch": patch}
    return {
        "openapi": "3.0.0",
        "info": {"title": "a Kubernetes for tests", "version": "v1"},
        "paths": paths,
    }
