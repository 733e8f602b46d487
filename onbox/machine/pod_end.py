"""How the pod before this one of the same Job ended, in Kubernetes' word: OOMKilled, Evicted.

An agent that the kernel ends with its whole container leaves no record, and only the cluster knows
that it was memory. Its server tells a pod that much only where a Role lets its account read pods;
most do not, and then nobody knows here.
"""

from __future__ import annotations

import json
import os
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.environment import POD

# What Kubernetes gives each container, unless somebody turned it off.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_OF_JOB = "controller-uid"
_TIMEOUT_S = 10.0


def before(environ: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> str | None:
    """None where nobody says so, and where that pod came to its own end."""
    if _HOST not in environ:
        return None
    try:
        own = _asked(environ, account, environ.get(POD) or os.uname().nodename)
        job = own["metadata"]["labels"][_OF_JOB]
        query = urllib.parse.urlencode({"labelSelector": f"{_OF_JOB}={job}"})
        return of_pods(_asked(environ, account, f"?{query}")["items"], own)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def of_pods(pods: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> str | None:
    """Of the pods of a Job the reason of the one that was made last before `own`. Pure."""
    made = {_made_at(pod): pod for pod in pods if _made_at(pod) < _made_at(own)}
    return _reason(made[max(made)]) if made else None


def _made_at(pod: Mapping[str, Any]) -> tuple[str, str]:
    return str(pod["metadata"]["creationTimestamp"]), str(pod["metadata"]["name"])


def _reason(pod: Mapping[str, Any]) -> str | None:
    status = pod["status"]
    found = status.get("containerStatuses", [])
    # A cluster may add others to each pod.
    own = [one for one in found if one.get("name") == "agent"] or found
    ended = [one["state"].get("terminated") for one in own]
    reasons = [status.get("reason"), *(one.get("reason") for one in ended if one)]
    return next((str(one) for one in reasons if one not in (None, "Error", "Completed")), None)


def _asked(environ: Mapping[str, str], account: Path, pods: str) -> Any:
    """A pod, or those that a query chooses."""
    namespace = urllib.parse.quote((account / "namespace").read_text().strip(), safe="")
    host, port = environ[_HOST], environ.get(_PORT, "443")
    where = f"[{host}]" if ":" in host else host
    name = pods if pods.startswith("?") else f"/{urllib.parse.quote(pods, safe='')}"
    request = urllib.request.Request(
        f"https://{where}:{port}/api/v1/namespaces/{namespace}/pods{name}",
        headers={"Authorization": f"Bearer {(account / 'token').read_text().strip()}"},
    )
    trusts = ssl.create_default_context(cafile=str(account / "ca.crt"))
    # A proxy of the environment's is for the internet, and must not see the token.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusts)
    )
    with opener.open(request, timeout=_TIMEOUT_S) as answer:
        return json.loads(answer.read())
