"""What is created on a Kubernetes cluster: a Job for each queue, its Secret, and the helper pod.

Pure. Objects, and no text: kubectl gets them as JSON, so no value of a person's can become a key.
One plain Job a queue runs on every version. Its agent ends as it does elsewhere, and the policy of
the Job says what follows: what a person has to mend is not tried again, and a pod that the cluster
took away costs no try.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.shared.disk import digest
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass

Object = dict[str, Any]

# By it Kueue knows the LocalQueue that lets a Job begin.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
RUN, TIER, QUEUE, ROLE = "boxcar-run", "boxcar-tier", "boxcar-queue", "boxcar-role"
_ALONE = {"boxcar-claim": "one-node"}
# Below it a Job would start again after an end that a person has to look at.
POLICY_SINCE = (1, 26)
REPLACEMENT_SINCE = (1, 29)
# The agent's own counters decide; this one only ends what they would try for ever.
_TRIES = 1000
NOT_AGAIN = (exit_codes.FAILED, exit_codes.INPUT, exit_codes.NO_ROOM, exit_codes.STOP_QUEUE)
_LONGEST_NAME = 52
# Of a JobSet: a pod of it has `-node-0-999-` and five letters more, and 63 is the limit.
_LONGEST_SET = 45
JOBSET = "JobSet"
# Its Jobs, as it names them; the first has the agent.
OF_SET = ("agent", "node")
_TIER, _MEMORY, _SECRETS = "tier", "shm", "secrets"
# Process 1 hears SIGTERM only where it says so, and takes in what the agent leaves behind.
# $1 the codes that end the Job where its policy cannot, then what run_queue.sh takes.
_AGENT = """
ends=$1 release=$2
shift 2
agent=
leave() { if [ -n "$agent" ]; then kill -TERM "$agent" 2>/dev/null; fi; }
trap leave TERM
bash "$release/run_queue.sh" "$@" &
agent=$!
while :; do
  wait "$agent"
  code=$?
  kill -0 "$agent" 2>/dev/null || break
done
printf 'the agent ended with %s\\n' "$code" >/dev/termination-log
case " $ends " in *" $code "*) exit 0 ;; esac
exit "$code"
"""
# A quota may demand limits. It unpacks code, and hashes results.
_HELPER_LIMITS = {"cpu": "1", "memory": "1Gi"}
# It ends by itself after half a day: nobody else ends that of a claim that was only audited. Who
# needs it after that makes it anew.
_HELPER = "trap 'exit 0' TERM; sleep 43200 & wait"


@dataclass(frozen=True)
class Owner:
    """Whose the objects are. Two people of one namespace may each have a run of that name, and what
    tells them apart is where it lies.
    """

    run: str
    claim: str
    folder: str

    @property
    def tier(self) -> str:
        return digest.of_bytes(f"{self.claim}\n{self.folder}".encode())[:6]


def labels(owner: Owner, queue: str = "") -> dict[str, str]:
    """By them everything of a run, or of one queue, is found again."""
    own = {RUN: plain_name(owner.run), TIER: owner.tier}
    return own | ({QUEUE: plain_name(queue)} if queue else {})


def plain_name(text: str) -> str:
    """As a label and a part of a name may be; another text never gives the same."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST_NAME]
    if plain == text:
        return plain
    return f"{plain[: _LONGEST_NAME - 9] or 'x'}-{digest.of_bytes(text.encode())[:8]}"


def job_name(owner: Owner, queue: str) -> str:
    name = f"boxcar-{plain_name(owner.run)}-{owner.tier}-{plain_name(queue)}"
    return _shortened(name, _LONGEST_NAME)


def set_name(owner: Owner, queue: str) -> str:
    """Of the JobSet that has the queue's Job, where its cells take several pods."""
    return _shortened(job_name(owner, queue), _LONGEST_SET)


def agent_jobs(owner: Owner, queue: str) -> tuple[str, str]:
    """Both names that the Job with the agent may have: a Job of its own, or one of a JobSet."""
    return job_name(owner, queue), f"{set_name(owner, queue)}-{OF_SET[0]}-0"


def job_beside(owner: Owner, queue: str) -> str:
    """The Job of a JobSet that has the pods beside the agent's."""
    return f"{set_name(owner, queue)}-{OF_SET[1]}-0"


def _shortened(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    return f"{name[: longest - 9].rstrip('-')}-{digest.of_bytes(name.encode())[:8]}"


def helper_name(owner: Owner) -> str:
    return job_name(owner, "helper")


def is_ours(owner: Owner, one: Mapping[str, Any]) -> bool:
    """Whether a Job, JobSet, pod or secret with the labels of the run is its own: anybody may give
    a label to a pod of theirs. Its name follows from the run, or that of the Job which owns it
    does; and it has the claim.
    """
    meta = one["metadata"]
    queue = meta.get("labels", {}).get(QUEUE, "")
    name = job_name(owner, queue) if queue else helper_name(owner)
    owners = {(each["kind"], each["name"]) for each in meta.get("ownerReferences", [])}
    if one["kind"] == "Secret":
        may_own = {("Job", name), (JOBSET, set_name(owner, queue))}
        return bool(meta["name"] == name and owners <= may_own)
    if one["kind"] == JOBSET:
        return bool(meta["name"] == set_name(owner, queue) and not owners)
    of_set = [f"{set_name(owner, queue)}-{part}-0" for part in OF_SET]
    if one["kind"] == "Pod" and queue:
        names = {("Job", each) for each in (name, *of_set)}
        return bool(names & owners) and _has_claim(owner, one["spec"])
    if meta["name"] in of_set:
        return (JOBSET, set_name(owner, queue)) in owners
    pod = one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"]
    return bool(meta["name"] == name and not owners and _has_claim(owner, pod))


def _has_claim(owner: Owner, pod: Mapping[str, Any]) -> bool:
    volumes = (one.get("persistentVolumeClaim", {}) for one in pod.get("volumes", []))
    return owner.claim in [volume.get("claimName") for volume in volumes]


def job(
    owner: Owner,
    queue: str,
    *,
    release: str,
    begin: Sequence[str],
    tier: str,
    credentials: str,
    image: str,
    grace_s: float,
    options: KubeOptions,
    version: tuple[int, int],
) -> Object:
    """`release` and `tier` are folders as the pod sees them, `credentials` the secrets' file;
    `begin` what run_queue.sh gets behind the queue; `grace_s` what a cell needs to save itself.
    """
    name = job_name(owner, queue)
    ends = "" if version >= POLICY_SINCE else " ".join(map(str, NOT_AGAIN))
    main = {
        "name": "agent",
        "image": image,
        "command": ["/bin/bash", "-c", _AGENT, "boxcar", ends, release, queue, *begin],
        "resources": _resources(options),
        "volumeMounts": _mounts(tier, credentials),
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": int(2 * grace_s) + 30,
        "containers": [main],
        "volumes": [
            {"name": _TIER, "persistentVolumeClaim": {"claimName": options.claim}},
            {"name": _MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": options.shm}},
            {"name": _SECRETS, "secret": {"secretName": name, "defaultMode": 0o400}},
        ],
    }
    mine = labels(owner, queue) | {ROLE: "agent"}
    spec: Object = {
        "backoffLimit": _TRIES,
        "template": {"metadata": {"labels": mine}, "spec": pod},
    }
    if version >= POLICY_SINCE:
        spec["podFailurePolicy"] = {"rules": _rules()}
    if version >= REPLACEMENT_SINCE:
        spec["podReplacementPolicy"] = "Failed"
    if options.kueue:
        mine = mine | {KUEUE_QUEUE: options.kueue}
        spec["suspend"] = True
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": mine},
        "spec": spec,
    }


def _resources(options: KubeOptions) -> Object:
    limits: Object = {options.gpu_resource: str(options.gpus)} if options.gpus else {}
    for resource, value in (("cpu", options.cpu), ("memory", options.memory)):
        limits |= {resource: value} if value else {}
    return {"limits": limits} if limits else {}


def _mounts(tier: str, credentials: str) -> list[Object]:
    """Of the credentials one file alone: what else lies in that folder stays to be seen."""
    file = {"mountPath": credentials, "subPath": posixpath.basename(credentials)}
    return [
        {"name": _TIER, "mountPath": tier},
        {"name": _MEMORY, "mountPath": "/dev/shm"},
        {"name": _SECRETS, **file, "readOnly": True},
    ]


def alone_with_claim(job: Object) -> Object:
    """The same, marked: no other pod may need the claim while it is at work."""
    meta = job["metadata"]
    return job | {"metadata": meta | {"labels": meta["labels"] | _ALONE}}


def is_alone_with_claim(job: Mapping[str, Any]) -> bool:
    labels: Mapping[str, str] = job["metadata"].get("labels", {})
    return _ALONE.items() <= labels.items()


def _rules() -> list[Object]:
    """Both keys in each rule, and the status: schemas of 1.25 to 1.34 call them required."""
    return [
        {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        },
        {
            "action": "FailJob",
            "onExitCodes": {
                "containerName": "agent",
                "operator": "In",
                "values": sorted(NOT_AGAIN),
            },
            "onPodConditions": [],
        },
    ]


def secret(owner: Owner, queue: str, credentials: str, content: bytes) -> Object:
    """The file of secrets of one queue."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job_name(owner, queue), "labels": labels(owner, queue)},
        "data": {posixpath.basename(credentials): base64.b64encode(content).decode()},
    }


def owned_by(one: Mapping[str, Any]) -> Object:
    """What a patch makes of an object that is to go with `one`."""
    meta = one["metadata"]
    owner = {"name": meta["name"], "uid": meta["uid"]}
    kind = {"apiVersion": one["apiVersion"], "kind": one["kind"]}
    return {"metadata": {"ownerReferences": [kind | owner]}}


def helper(owner: Owner, *, tier: str, image: str, options: KubeOptions) -> Object:
    """A pod without a GPU that sees the tier: files travel through it, and it answers for queues
    that have no pod.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": helper_name(owner), "labels": labels(owner) | {ROLE: "helper"}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "containers": [
                {
                    "name": "helper",
                    "image": image,
                    "command": ["/bin/sh", "-c", _HELPER],
                    "resources": {"limits": _HELPER_LIMITS, "requests": _HELPER_LIMITS},
                    "volumeMounts": [{"name": _TIER, "mountPath": tier}],
                }
            ],
            "volumes": [{"name": _TIER, "persistentVolumeClaim": {"claimName": options.claim}}],
        },
    }
