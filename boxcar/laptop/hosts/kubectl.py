"""The person's own kubectl: their login plugins and contexts work, and nothing else reaches a
cluster. What it says is read as JSON, or is told to the person.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from boxcar.laptop.common import run_program
from boxcar.laptop.hosts import kubectl_errors
from boxcar.laptop.hosts.kubectl_errors import NotThere
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.sentence import _

TIMEOUT_S = 60.0


class Kubectl:
    """One namespace of one cluster; None is what kubectl itself takes."""

    def __init__(self, context: str | None, namespace: str | None) -> None:
        self.context, self.namespace = context, namespace

    def words(self, *words: str) -> list[str]:
        """The whole command."""
        where = [f"--context={self.context}"] if self.context else []
        where += [f"--namespace={self.namespace}"] if self.namespace else []
        return ["kubectl", *where, *words]

    def run(self, *words: str, data: bytes = b"", timeout_s: float = TIMEOUT_S) -> bytes:
        """What it prints. Raises Refused, AlreadyThere, and TemporaryError where it may go better
        later; the call may have taken effect then.
        """
        if shutil.which("kubectl") is None:
            raise InputError(
                _(
                    "kubectl is not installed on this machine. Install it as your cluster's page "
                    "says, and check that this answers: kubectl get pods"
                )
            )
        try:
            done = run_program.run(self.words(*words), data, timeout_s)
        except (subprocess.TimeoutExpired, run_program.TooMuchSaid):
            raise TemporaryError(
                _("the cluster gave no answer within {seconds:.0f} s", seconds=timeout_s)
            ) from None
        # Of `auth can-i` a no is an answer, and ends with 1.
        if done.returncode and (done.stderr.strip() or not done.stdout.strip()):
            raise kubectl_errors.error_of(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def items(self, kinds: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """All objects of these kinds (`jobs,pods`) with these labels."""
        chosen = ",".join(f"{name}={value}" for name, value in labels.items())
        found = json.loads(self.run("get", kinds, "-l", chosen, "-o", "json"))
        return list(found["items"])

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        said = self.run("get", kind, name, "--ignore-not-found", "-o", "json")
        found: dict[str, Any] | None = json.loads(said) if said.strip() else None
        return found

    def create(self, one: Mapping[str, Any]) -> None:
        """By stdin, so that no secret stands in a command."""
        self.run("create", "-f", "-", data=json.dumps(one).encode())

    def apply(self, one: Mapping[str, Any]) -> None:
        """As `create`, also where it is there already. Keeps no copy of it in an annotation."""
        self.run("apply", "--server-side", "--force-conflicts", "-f", "-", data=_bytes(one))

    def delete(self, one: Mapping[str, Any], *, is_now: bool = False) -> None:
        """Begin to delete that very object, and not one of its name that somebody made a moment
        ago; with all it owns. No error where it is gone. `is_now`: a pod without its grace, also on
        a node that does not answer.
        """
        meta = one["metadata"]
        group = one["apiVersion"] if "/" in one["apiVersion"] else ""
        plural = f"{one['kind'].lower()}s"
        root = f"/apis/{group}" if group else f"/api/{one['apiVersion']}"
        path = f"{root}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": meta["uid"]},
            "propagationPolicy": "Foreground",
        }
        if is_now:
            options |= {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        with contextlib.suppress(NotThere):
            self.run("delete", "--raw", path, "-f", "-", data=_bytes(options))

    def server_version(self) -> tuple[int, int]:
        """Such as 1 and 31. Providers put a + behind the minor number."""
        said = json.loads(self.run("version", "-o", "json")).get("serverVersion") or {}
        minor = "".join(letter for letter in str(said.get("minor", "")) if letter.isdigit())
        return int(said.get("major") or 1), int(minor or 0)


def _bytes(one: Mapping[str, Any]) -> bytes:
    return json.dumps(one).encode()
