"""What of a run is on a Kubernetes cluster, and its end: each object by its uid, looked for until
it is gone. What only has the run's labels is somebody else's, and stays.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.release import kube_jobset, kube_objects
from boxcar.laptop.release.kube_objects import Owner
from boxcar.shared.errors import Command, TemporaryError, some
from boxcar.shared.sentence import _

# A pod has twice the grace of a cell, and a node that is gone keeps its pods for minutes.
GONE_WITHIN_S = 600.0
_LOOK_EVERY_S = 1.0
_MOST_NAMED = 3
Objects = Sequence[dict[str, Any]]


def of_run(kubectl: Kubectl, owner: Owner, kinds: str, queue: str = "") -> list[dict[str, Any]]:
    """Its objects of these kinds (`jobs,pods`), or those of one queue."""
    found = kubectl.items(kinds, kube_objects.labels(owner, queue))
    return [one for one in found if kube_objects.is_ours(owner, one)]


def delete(kubectl: Kubectl, owner: Owner, objects: Objects) -> None:
    """Raises TemporaryError where one stays, or the cluster is silent. Harmless to repeat. Of a
    JobSet's Job the set goes, with all its Jobs.
    """
    objects = kube_jobset.wholes(objects)
    for one in objects:
        kubectl.delete(one)
    uids = {one["metadata"]["uid"] for one in objects}
    kinds = ",".join({_kind(one) for one in objects})
    until = time.monotonic() + GONE_WITHIN_S
    while objects:
        there = kubectl.items(kinds, kube_objects.labels(owner))
        left = [_named(one) for one in there if one["metadata"]["uid"] in uids]
        if not left:
            return
        if time.monotonic() > until:
            raise TemporaryError(
                _(
                    "still on the cluster: {left}. All files were kept. Look with kubectl "
                    "describe, then",
                    left=some(left, _MOST_NAMED),
                ),
                Command("down"),
            )
        time.sleep(_LOOK_EVERY_S)


def _kind(one: dict[str, Any]) -> str:
    return kube_jobset.KIND if one["kind"] == kube_objects.JOBSET else str(one["kind"].lower())


def _named(one: dict[str, Any]) -> str:
    return f"{one['kind'].lower()}/{one['metadata']['name']}"
