"""JobSet: what its webhook refuses and fills in."""

from __future__ import annotations

from .store import Object

_SPEC = {"replicatedJobs", "network", "successPolicy", "startupPolicy", "suspend"}
_REPLICATED = {"name", "groupName", "replicas", "template"}
_LONGEST = 63


def templates(one: Object) -> list[Object]:
    """Its Jobs, as objects that the schema of a Job can be asked about."""
    return [
        {"apiVersion": "batch/v1", "kind": "Job", **replicated["template"]}
        for replicated in one["spec"].get("replicatedJobs", [])
    ]


def unknown_fields(one: Object) -> list[str]:
    found = [f"spec.{name}" for name in one["spec"].keys() - _SPEC]
    for number, replicated in enumerate(one["spec"].get("replicatedJobs", [])):
        lacking = replicated.keys() - _REPLICATED
        found += [f"spec.replicatedJobs[{number}].{name}" for name in lacking]
    return [f'unknown field "{name}"' for name in sorted(found)]


def fill_in(one: Object) -> None:
    spec = one["spec"]
    spec.setdefault("successPolicy", {"operator": "All"})
    spec.setdefault("startupPolicy", {"startupPolicyOrder": "AnyOrder"})
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for replicated in spec["replicatedJobs"]:
        replicated.setdefault("replicas", 1)
        replicated.setdefault("groupName", "default")
        replicated["template"]["spec"].setdefault("completionMode", "Indexed")
    one["status"] = {}


def wrong(one: Object) -> list[tuple[str, str, str]]:
    """As admission has it: field, reason, message."""
    found, name = [], one["metadata"]["name"]
    names = [replicated["name"] for replicated in one["spec"]["replicatedJobs"]]
    for number, replicated in enumerate(one["spec"]["replicatedJobs"]):
        field = f"spec.replicatedJobs[{number}].name"
        job = f"{name}-{replicated['name']}-{replicated['replicas'] - 1}"
        pods = replicated["template"]["spec"].get("completions")
        for made, what in ((job, "job"), (f"{job}-{(pods or 1) - 1}-abcde", "pod")):
            if len(made) > _LONGEST:
                said = f"JobSet name is too long, {what} names generated for this JobSet will"
                found.append((field, "FieldValueInvalid", f"{said} exceed 63 characters"))
    for target in one["spec"]["successPolicy"].get("targetReplicatedJobs", []):
        if target not in names:
            said = f"invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs"
            found.append(("spec.successPolicy", "FieldValueInvalid", said))
    return found
