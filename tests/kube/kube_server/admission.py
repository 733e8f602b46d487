"""What is refused when an object comes in, and what is filled in for it."""

from __future__ import annotations

import base64
import functools
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import jsonschema
import kubernetes_validate.utils as schemas
from referencing import Registry, Resource

from . import job_set_admission
from .kinds import CUSTOM_VERSIONS, Kind
from .store import ApiError, Object, Store

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUFFIXES = {"m": "0.001", "k": 1000, "M": 10**6, "G": 10**9, "T": 10**12,
             "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # fmt: skip
_OLDEST_SCHEMAS = (1, 25)
# From which version on a cluster does it, and does not drop it.
_SINCE = {"podFailurePolicy": (1, 26), "podReplacementPolicy": (1, 29), "suspend": (1, 22)}


def quantity(value: Any) -> Decimal:
    """`500m` is 0.5, `2Gi` is 2147483648."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(value))
    assert found, f"{value!r} is no quantity"
    return Decimal(found[1]) * Decimal(_SUFFIXES.get(found[2], 1))


def check_fields(one: Object, version: tuple[int, int], how: str) -> list[str]:
    """Fields that the version does not know: refused if strict, and what to warn of otherwise.

    A value of the wrong type is refused always.
    """
    if one["kind"] == "JobSet":
        lacking = job_set_admission.unknown_fields(one)
        if lacking and how == "Strict":
            raise ApiError(400, "BadRequest", f"strict decoding error: {', '.join(lacking)}")
        return lacking + [
            said
            for job in job_set_admission.templates(one)
            for said in check_fields(job, version, how)
        ]
    warnings: list[str] = []
    if one["apiVersion"] in CUSTOM_VERSIONS:
        return warnings
    for error in _validator(one["kind"], one["apiVersion"], version).iter_errors(one):
        path = ".".join(str(part) for part in error.absolute_path)
        if error.validator == "required" and "podFailurePolicy" in error.absolute_path:
            continue  # 1.25 to 1.28 call onPodConditions required, and no server asks for it
        if error.validator != "additionalProperties":
            said = f"{one['kind']} in version {_quoted(one)} cannot be handled as a {one['kind']}"
            raise ApiError(400, "BadRequest", f"{said}: {path}: {error.message}")
        for name in re.findall(r"'([^']+)'", error.message):
            field = re.sub(r"[.](\d+)", r"[\1]", f"{path}.{name}" if path else name)
            warnings.append(f'unknown field "{field}"')
    if warnings and how == "Strict":
        said = f"{one['kind']} in version {_quoted(one)} cannot be handled as a {one['kind']}"
        raise ApiError(400, "BadRequest", f"{said}: strict decoding error: {', '.join(warnings)}")
    return warnings if how == "Warn" else []


def drop_unknown(one: Object, version: tuple[int, int]) -> None:
    """As a server does with what it does not know, when it was not asked to be strict."""
    if one["kind"] == "JobSet":
        for job in job_set_admission.templates(one):
            drop_unknown(job, version)
        return
    if one["apiVersion"] in CUSTOM_VERSIONS:
        return
    for error in list(_validator(one["kind"], one["apiVersion"], version).iter_errors(one)):
        if error.validator == "additionalProperties":
            for name in re.findall(r"'([^']+)'", error.message):
                error.instance.pop(name, None)
    for name, since in _SINCE.items():
        if one["kind"] == "Job" and version < since:
            one["spec"].pop(name, None)


@functools.cache
def _validator(kind: str, api_version: str, version: tuple[int, int]) -> Any:
    number = "v{}.{}.0-local-strict".format(*max(version, _OLDEST_SCHEMAS))
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    read = functools.partial(schemas.schema_contents, desired_version="")
    folder = f"kubernetes-json-schema/{number}"
    schema = read(f"{folder}/{kind.lower()}-{group}.json")
    rest = Resource.from_contents(read(f"{folder}/_definitions.json"))
    registry = rest @ (Resource.from_contents(schema) @ Registry())
    return jsonschema.validators.Draft202012Validator(schema, registry=registry)


def _quoted(one: Object) -> str:
    return '"{}"'.format(one["apiVersion"].split("/")[-1])


# -- what is filled in


def fill_in(one: Object, kind: Kind) -> None:
    spec = one.setdefault("spec", {}) if kind.plural not in ("secrets", "configmaps") else {}
    if kind.plural == "secrets":
        for name, value in (one.pop("stringData", None) or {}).items():
            one.setdefault("data", {})[name] = base64.b64encode(value.encode()).decode()
        one.setdefault("type", "Opaque")
    elif kind.plural == "persistentvolumeclaims":
        spec.setdefault("volumeMode", "Filesystem")
        one.setdefault("status", {"phase": "Pending"})
    elif kind.plural == "namespaces":
        one["status"] = {"phase": "Active"}
        one["metadata"]["finalizers"] = ["kubernetes"]  # until everything in it has gone
    elif kind.plural == "pods":
        fill_in_pod(spec)
        one["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    elif kind.plural == "jobsets":
        job_set_admission.fill_in(one)
    elif kind.plural == "jobs":
        policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        for name, value in {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": policy,
        }.items():
            spec.setdefault(name, value)
        fill_in_pod(spec["template"]["spec"])
        one["status"] = {}


def fill_in_pod(spec: Object) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    for one in [*spec.get("initContainers", []), *spec["containers"]]:
        one.setdefault("terminationMessagePath", "/dev/termination-log")
        one.setdefault("terminationMessagePolicy", "File")
        one.setdefault("imagePullPolicy", "IfNotPresent")
        limits = (one.setdefault("resources", {})).get("limits", {})
        if limits:
            one["resources"]["requests"] = {**limits, **one["resources"].get("requests", {})}


# -- what is refused


def check(one: Object, kind: Kind, old: Object | None) -> None:
    wrong: list[tuple[str, str, str]] = []  # field, reason, message
    name = one["metadata"].get("name", "")
    longest = 63 if kind.plural in ("jobs", "namespaces") else 253
    if not _NAME.fullmatch(name) or len(name) > longest:
        said = f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case'
        wrong.append(("metadata.name", "FieldValueInvalid", f"{said} alphanumeric characters"))
    if kind.plural == "jobs":
        wrong += _wrong_in_job(one["spec"], old)
    if kind.plural == "jobsets":
        wrong += job_set_admission.wrong(one)
    if kind.plural == "pods" and old is None:
        wrong += _wrong_in_pod("spec", one["spec"])
    if not wrong:
        return
    causes = [{"field": f, "reason": reason, "message": said} for f, reason, said in wrong]
    told = [f"{field}: {said}" for field, _, said in wrong]
    every = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    said = f'{kind.kind}{"." + kind.group if kind.group else ""} "{name}" is invalid: {every}'
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": causes}
    raise ApiError(422, "Invalid", said, details)


def _wrong_in_job(spec: Object, old: Object | None) -> list[tuple[str, str, str]]:
    template = spec["template"]["spec"]
    wrong = _wrong_in_pod("spec.template.spec", template)
    at, invalid = "spec.template.spec.restartPolicy", "FieldValueInvalid"
    policy = template["restartPolicy"]
    if policy == "Always":
        said = 'Required value: valid values: "OnFailure", "Never"'
        wrong.append((at, "FieldValueRequired", said))
    rules = (spec.get("podFailurePolicy") or {}).get("rules", [])
    if rules and policy != "Never":
        said = 'only "Never" is supported when podFailurePolicy is specified'
        wrong.append((at, invalid, f'Invalid value: "{policy}": {said}'))
    if rules and spec["podReplacementPolicy"] != "Failed":
        field = "spec.podReplacementPolicy"
        wrong.append((field, "FieldValueNotSupported", 'Unsupported value: supported: "Failed"'))
    for number, rule in enumerate(rules):
        codes = rule.get("onExitCodes") or {}
        if 0 in codes.get("values", []) and codes.get("operator") == "In":
            field = f"spec.podFailurePolicy.rules[{number}].onExitCodes.values"
            said = "must not be 0 for the In operator"
            wrong.append((field, invalid, f"Invalid value: 0: {said}"))
    if old is not None:
        was = old["spec"]
        for field in ("template", "podFailurePolicy", "completions", "selector"):
            may = field == "template" and (was.get("suspend") and "startTime" not in old["status"])
            if spec.get(field) != was.get(field) and not may:
                said = "Invalid value: field is immutable"
                wrong.append((f"spec.{field}", invalid, said))
    return wrong


def _wrong_in_pod(at: str, spec: Object) -> list[tuple[str, str, str]]:
    wrong = []
    volumes = {one["name"] for one in spec.get("volumes", [])}
    for kind in ("initContainers", "containers"):
        for number, one in enumerate(spec.get(kind, [])):
            here = f"{at}.{kind}[{number}]"
            if not one.get("image"):
                wrong.append((f"{here}.image", "FieldValueRequired", "Required value"))
            for index, mount in enumerate(one.get("volumeMounts", [])):
                if mount["name"] not in volumes:
                    said = f'Not found: "{mount["name"]}"'
                    field = f"{here}.volumeMounts[{index}].name"
                    wrong.append((field, "FieldValueNotFound", said))
            wrong += _wrong_in_resources(f"{here}.resources", one["resources"])
    return wrong


def _wrong_in_resources(at: str, resources: Object) -> list[tuple[str, str, str]]:
    wrong = []
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for which, values in (("limits", limits), ("requests", requests)):
        for name, value in values.items():
            if "/" in name and quantity(value) % 1:
                said = f'Invalid value: "{value}": must be an integer'
                wrong.append((f"{at}.{which}[{name}]", "FieldValueInvalid", said))
    for name, value in requests.items():
        if "/" in name and (name not in limits or quantity(limits[name]) != quantity(value)):
            said = f'Invalid value: "{value}": must be equal to {name} limit of {limits.get(name)}'
            wrong.append((f"{at}.requests", "FieldValueInvalid", said))
        elif name in limits and quantity(value) > quantity(limits[name]):
            said = f'Invalid value: "{value}": must be less than or equal to {name} limit'
            wrong.append((f"{at}.requests", "FieldValueInvalid", said))
    return wrong


# -- the quota


def requested(spec: Object) -> dict[str, Decimal]:
    """What a pod asks for, by name of the resource."""
    total: dict[str, Decimal] = {}
    for one in spec["containers"]:
        for name, value in one.get("resources", {}).get("requests", {}).items():
            total[name] = total.get(name, Decimal(0)) + quantity(value)
    return total


def used(store: Store, namespace: str, name: str) -> Decimal:
    """How much of one row of a quota is used, such as `requests.nvidia.com/gpu` or `pods`."""
    if name.startswith("count/"):
        return Decimal(len(store.all(name.removeprefix("count/").split(".")[0], namespace)))
    if name in ("persistentvolumeclaims", "secrets", "configmaps"):
        return Decimal(len(store.all(name, namespace)))
    pods = [
        one
        for one in store.all("pods", namespace)
        if one["status"].get("phase") not in ("Succeeded", "Failed")
    ]
    if name == "pods":
        return Decimal(len(pods))
    return sum((_of_pod(one["spec"], name) for one in pods), Decimal(0))


def _of_pod(spec: Object, name: str) -> Decimal:
    which = "limits" if name.startswith("limits.") else "requests"
    resource = name.removeprefix(f"{which}.")
    values = (one.get("resources", {}).get(which, {}) for one in spec["containers"])
    return sum((quantity(each.get(resource, 0)) for each in values), Decimal(0))


def _unsaid(spec: Object, hard: Object) -> list[str]:
    """What a quota wants each container to say and one does not: `limits.cpu for: main`."""
    told = []
    for name in sorted(hard):
        which = "limits" if name.startswith("limits.") else "requests"
        resource = name.removeprefix(f"{which}.")
        silent = [
            one["name"]
            for one in spec["containers"]
            if resource in ("cpu", "memory") and resource not in one["resources"].get(which, {})
        ]
        told += [f"{name} for: {','.join(silent)}"] if silent else []
    return told


@dataclass
class QuotaController:
    """What is used of each quota, as people read it."""

    store: Store

    def reconcile(self) -> None:
        for quota in self.store.all("resourcequotas"):
            namespace, hard = quota["metadata"]["namespace"], quota["spec"].get("hard", {})
            have = {name: str(used(self.store, namespace, name)) for name in hard}
            if quota.get("status") != (status := {"hard": hard, "used": have}):
                quota["status"] = status
                self.store.touch("resourcequotas", quota)


def check_quota(store: Store, one: Object, kind: Kind) -> None:
    namespace = one["metadata"].get("namespace", "")
    for quota in store.all("resourcequotas", namespace):
        hard = quota["spec"].get("hard", {})
        if kind.plural == "pods" and (unsaid := _unsaid(one["spec"], hard)):
            said = f"failed quota: {quota['metadata']['name']}: must specify {'; '.join(unsaid)}"
            _forbid(one, kind, said)
        over = []
        for name, most in hard.items():
            more = _more(one, kind, name)
            have = used(store, namespace, name)
            if more and have + more > quantity(most):
                over.append((name, more, have, most))
        if over:
            told = [",".join(f"{name}={row[at]}" for name, *row in over) for at in range(3)]
            said = (
                f"exceeded quota: {quota['metadata']['name']}, requested: {told[0]}, "
                f"used: {told[1]}, limited: {told[2]}"
            )
            _forbid(one, kind, said)


def _forbid(one: Object, kind: Kind, why: str) -> None:
    name = one["metadata"].get("name", "")
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    message = f'{kind.qualified} "{name}" is forbidden: {why}'
    raise ApiError(403, "Forbidden", message, details)


def _more(one: Object, kind: Kind, name: str) -> Decimal:
    if name in (f"count/{kind.qualified}", kind.plural):
        return Decimal(1)
    return _of_pod(one["spec"], name) if kind.plural == "pods" else Decimal(0)
