"""The helper pod of a run on Kubernetes: made when it is needed, and made anew when it has ended.

It has no state, so an ended one is deleted, and so is one whose image can never start. One that
waits for a node stays: the cluster may be making one.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.kubectl_errors import AlreadyThere
from boxcar.laptop.hosts.scheduled import Scheduled
from boxcar.laptop.run import kube_pods
from boxcar.laptop.run.open_run import Tell
from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from boxcar.shared.sentence import _, mark

# A large image is pulled meanwhile.
READY_WITHIN_S = 300.0
# What time may mend: a node that is being made, a claim that is being bound.
STUCK_FOR_S = 15.0
# Its own grace is 5 s. What stays longer is on a node that does not answer.
GOING_FOR_S = 15.0
_LOOK_EVERY_S = 0.5
_ASKED = "boxcar-image"
_NEVER = ("ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_NO_CLAIM = mark("create the claim, or name another one in the profile")


class HelperPod:
    """For several threads at once. `make` is the pod as it is to be created."""

    def __init__(
        self, kubectl: Kubectl, name: str, make: Callable[[], Mapping[str, Any]], tell: Tell
    ) -> None:
        self._kubectl, self.name, self._make, self._tell = kubectl, name, make, tell
        self._lock = threading.Lock()
        self._is_ready = False
        self.problem: BoxcarError | None = None  # why it does not answer, since the last look

    def note_state(self, pods: Sequence[Mapping[str, Any]]) -> None:
        """What is there now: a pod that ended meanwhile is made anew when it is next needed."""
        mine = [pod for pod in pods if pod["metadata"]["name"] == self.name]
        self._is_ready = any(self._serves(pod) for pod in mine)
        self.problem = None

    def ready(self) -> str:
        """Its name, once it answers. Raises InputError where it never will as things are, and
        TemporaryError; until the next look the same one.
        """
        with self._lock:
            if self.problem:
                raise self.problem
            if not self._is_ready:
                try:
                    self._await()
                except BoxcarError as error:
                    self.problem = error
                    raise
            return self.name

    def _await(self) -> None:
        begun, told, going_since, stuck_since = time.monotonic(), "", 0.0, 0.0
        while True:
            now = time.monotonic()
            pod = self._kubectl.find("pod", self.name)
            why = kube_pods.why_stuck(pod) if pod else ""
            going_since = (going_since or now) if pod and _is_going(pod) else 0.0
            stuck_since = (stuck_since or now) if why else 0.0
            if pod is None:
                with contextlib.suppress(AlreadyThere):
                    self._kubectl.create(self._made())
            elif self._serves(pod):
                self._is_ready = True
                return
            elif self._is_over(pod) or (going_since and now - going_since > GOING_FOR_S):
                self.delete(pod)
            elif why and (_is_never(why) or now - stuck_since > STUCK_FOR_S):
                self._refuse(pod, why)
            elif why != told:
                self._tell(_("the helper pod {pod} waits ({why})", pod=self.name, why=why))
                told = why
            if now - begun > READY_WITHIN_S:
                raise TemporaryError(_("the helper pod {pod} has not started yet", pod=self.name))
            time.sleep(_LOOK_EVERY_S)

    def _made(self) -> dict[str, Any]:
        """With the image that was asked for, since a cluster's policy may put another in place."""
        made = self._make()
        notes = {**made["metadata"].get("annotations", {}), _ASKED: _image(made)}
        return {**made, "metadata": {**made["metadata"], "annotations": notes}}

    def _serves(self, pod: Mapping[str, Any]) -> bool:
        return kube_pods.is_running(pod) and not _is_going(pod) and not self._is_over(pod)

    def _is_over(self, pod: Mapping[str, Any]) -> bool:
        """It has ended, or it is of an image that the profile named before."""
        asked = pod["metadata"].get("annotations", {}).get(_ASKED)
        return kube_pods.has_ended(pod) or asked not in (None, _image(self._make()))

    def _refuse(self, pod: Mapping[str, Any], why: str) -> None:
        about = {"pod": self.name, "why": why}
        need = Scheduled(self.name, why).need
        if _is_never(why):
            # In its place comes one of the profile as it is then.
            self.delete(pod)
            need = need or _(_NO_CLAIM)
        if need:
            raise InputError(
                _("the helper pod {pod} cannot start ({why}): {need}", **about, need=need)
            )
        raise TemporaryError(
            _(
                "the helper pod {pod} waits ({why}). It is left there to wait; what the cluster "
                "says of it: kubectl describe pod {pod}",
                **about,
            )
        )

    def remove(self) -> None:
        """It goes, if it is there."""
        if pod := self._kubectl.find("pod", self.name):
            self.delete(pod)

    def delete(self, pod: Mapping[str, Any]) -> None:
        """That very pod, and at once: it holds nothing."""
        self._kubectl.delete(pod, is_now=True)


def _is_going(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _image(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def _is_never(why: str) -> bool:
    return why.startswith(_NEVER) or ("persistentvolumeclaim" in why and "not found" in why)
