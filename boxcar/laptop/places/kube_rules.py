"""What a Kubernetes cluster says of what is asked for, and what that means: ok, warn or refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from boxcar.laptop.fitness.rules import ALL, Row
from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.kubectl_errors import AlreadyThere, Refused
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.laptop.release.kube_objects import POLICY_SINCE
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import _

# Verb and resource, as `kubectl auth can-i` takes them.
NEEDED = (
    "create jobs",
    "delete jobs",
    "create pods",
    "create pods/exec",
    "create secrets",
)


def may(kubectl: Kubectl, words: str) -> bool:
    """Whether the cluster lets this person do it."""
    verb, resource = words.split()
    kind, _slash, sub = resource.partition("/")
    more = (f"--subresource={sub}",) if sub else ()
    return kubectl.run("auth", "can-i", verb, kind, *more).strip() == b"yes"


def tried(kubectl: Kubectl, job: Mapping[str, Any]) -> str:
    """Why the server would not take the Job; "" where it would."""
    try:
        words = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
        kubectl.run(*words, data=json.dumps(job).encode())
    except AlreadyThere:
        return ""
    except Refused as error:
        return str(error)
    return ""


def judge(
    plan: Plan,
    options: KubeOptions,
    *,
    version: tuple[int, int],
    claim: Mapping[str, Any] | None,
    refusals: Mapping[str, str],
    allowed: Mapping[str, bool],
) -> list[Row]:
    """All rows; `box` is a queue's, or all."""
    found = f"{version[0]}.{version[1]}"
    old = _("before 1.26 a Job cannot tell ends apart: a cell that failed ends it as done")
    is_old = version < POLICY_SINCE
    rows = [Row(ALL, "Kubernetes", "warn" if is_old else "ok", found, old if is_old else "")]
    rows.append(_of_claim(plan, options, claim))
    lacking = [words for words, is_so in allowed.items() if not is_so]
    if lacking:
        why = _("ask the cluster's admins for a Role with these verbs")
        rows.append(Row(ALL, "access", "refuse", ", ".join(lacking), why))
    rows += [
        Row(plan.queues[queue], "Job", "refuse", _("not taken"), said)
        for queue, said in refusals.items()
        if said
    ]
    return rows


def _of_claim(plan: Plan, options: KubeOptions, claim: Mapping[str, Any] | None) -> Row:
    name = str(options.claim)
    if claim is None:
        why = _("there is no such PersistentVolumeClaim: create it, or name another one")
        return Row(ALL, "claim", "refuse", name, why)
    modes = claim["spec"].get("accessModes", [])
    if "ReadWriteMany" not in modes:
        why = _("the queues and the helper pod share it, so it must be ReadWriteMany")
        return Row(ALL, "claim", "refuse", f"{name}: {', '.join(modes)}", why)
    phase = claim.get("status", {}).get("phase", "")
    if phase != "Bound":
        why = _("it is not bound yet; kubectl describe pvc says why")
        return Row(ALL, "claim", "warn", f"{name}: {phase}", why)
    return Row(ALL, "claim", "ok", name)
