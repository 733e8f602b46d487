"""Pods that run: from bound to a node to the end of their processes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, field
from pathlib import Path

from . import pod_parts
from .account import Account
from .container import Container, Mount
from .events import tell
from .pod_parts import Folders, NotReadyYet
from .store import Object, Store, now

ENDED = ("Succeeded", "Failed")


def set_condition(one: Object, kind: str, status: str, reason: str = "", message: str = "") -> None:
    """The condition of that type, once, with the time of its last change."""
    conditions = one["status"].setdefault("conditions", [])
    old = next((have for have in conditions if have["type"] == kind), None)
    if old is not None and old["status"] == status and old.get("message", "") == message:
        return
    new = {"type": kind, "status": status, "lastTransitionTime": now()}
    new.update({k: v for k, v in (("reason", reason), ("message", message)) if v})
    if old is not None:
        conditions.remove(old)
    conditions.append(new)


@dataclass
class Running:
    """A pod on its node: what the kubelet knows of it."""

    pod: Object
    task: asyncio.Task[None] | None = None
    containers: dict[str, Container] = field(default_factory=dict)
    logs: dict[str, list[Path]] = field(default_factory=dict)  # the last one is the present one
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    evicted: tuple[str, str] | None = None
    grace_s: float | None = None


@dataclass
class Kubelets:
    """The kubelets of all nodes; a node in `lost` has none any more."""

    store: Store
    folders: Folders
    account: Account
    images: dict[str, str] = field(default_factory=dict)  # NAME: missing, without-python, -bash
    lost: set[str] = field(default_factory=set)
    crash_wait_s: float = 0.2
    running: dict[str, Running] = field(default_factory=dict)

    def reconcile(self) -> None:
        """Start what is bound to a node, stop what is to be deleted."""
        self._tell_names()
        for pod in self.store.all("pods"):
            meta = pod["metadata"]
            node = pod["spec"].get("nodeName")
            if not node or node in self.lost:
                continue
            one = self.running.get(meta["uid"])
            if one is None and pod["status"].get("phase") not in ENDED:
                one = self.running[meta["uid"]] = Running(pod)
                one.task = asyncio.ensure_future(self._run(one))
            if one is not None and meta.get("deletionTimestamp"):
                self._stop(one, meta.get("deletionGracePeriodSeconds", 30))
        there = {pod["metadata"]["uid"] for pod in self.store.all("pods")}
        for uid, one in list(self.running.items()):
            if uid not in there and one.pod["spec"].get("nodeName") not in self.lost:
                self._stop(one, 0)

    def _tell_names(self) -> None:
        """As the cluster's DNS tells them, in the file that each pod has for its host names."""
        for one in self.running.values():
            hosts = self.folders.hosts(one.pod["metadata"]["uid"])
            if hosts.exists() and hosts.read_text() != (names := self._names(one.pod)):
                hosts.write_text(names)  # in place: it is mounted

    def _names(self, pod: Object) -> str:
        """This machine's, its own, and of its namespace those that a headless service publishes."""
        where = pod["metadata"]["namespace"]
        lines = [f"127.0.0.1 {' '.join(dict.fromkeys([*_published(pod), hostname(pod)]))}"]
        for other in self.store.all("pods", where):
            address = other["status"].get("podIP")
            if other is pod or not address or other["status"].get("phase") in ENDED:
                continue
            if self.store.find("services", where, other["spec"].get("subdomain", "")):
                lines.append(f"{address} {' '.join(_published(other))}")
        return Path("/etc/hosts").read_text() + "\n".join(lines) + "\n"

    def _stop(self, one: Running, grace_s: float) -> None:
        if one.grace_s is None or grace_s < one.grace_s:
            one.grace_s = grace_s
            one.stopping.set()

    def evict(self, pod: Object, reason: str, message: str) -> None:
        """As a node does that runs out of memory or disk."""
        one = self.running[pod["metadata"]["uid"]]
        set_condition(pod, "DisruptionTarget", "True", "TerminationByKubelet", message)
        one.evicted = reason, message
        tell(self.store, pod, "Warning", reason, message)
        self._stop(one, pod["spec"]["terminationGracePeriodSeconds"])
        self.store.touch("pods", pod)

    def lose(self, node: str, *, power: bool) -> None:
        """The node is not heard of any more; without power its processes have ended, too."""
        self.lost.add(node)
        for one in self.running.values():
            if one.pod["spec"].get("nodeName") == node and one.task is not None:
                one.task.cancel()
                if power:
                    for container in one.containers.values():
                        container.signal(signal.SIGKILL)

    async def end(self) -> None:
        for one in self.running.values():
            for container in one.containers.values():
                container.signal(signal.SIGKILL)
                if container.process is not None:
                    await container.process.wait()
            if one.task is not None:
                one.task.cancel()

    # -- one pod

    async def _run(self, one: Running) -> None:
        pod = one.pod
        pod["status"].update(startTime=now(), hostIP="127.0.0.1", podIP="127.0.0.1")
        try:
            for spec in pod["spec"].get("initContainers", []):
                if await self._container(one, spec, "initContainerStatuses") != 0:
                    return self._ended(one, failed=True)
            set_condition(pod, "Initialized", "True")
            codes = await asyncio.gather(
                *(self._container(one, c, "containerStatuses") for c in pod["spec"]["containers"])
            )
        except asyncio.CancelledError:
            return None
        return self._ended(one, failed=any(codes) or one.evicted is not None)

    def _ended(self, one: Running, *, failed: bool) -> None:
        pod = one.pod
        pod["status"]["phase"] = "Failed" if failed else "Succeeded"
        if one.evicted is not None:
            pod["status"]["reason"], pod["status"]["message"] = one.evicted
        reason = "PodFailed" if failed else "PodCompleted"
        for kind in ("Ready", "ContainersReady"):
            set_condition(pod, kind, "False", reason)
        self.store.touch("pods", pod)

    async def _container(self, one: Running, spec: Object, where: str) -> int:
        """Until it ends and is not restarted; its exit code."""
        restarts = 0
        while True:
            container = await self._started(one, spec, where, restarts)
            if container is None:
                return 137
            code = await self._followed(one, container)
            if container.cannot_start:
                code = 128
            state = self._terminated(one, spec, container, code)
            self._state(one, spec, where, restarts, terminated=state)
            policy = one.pod["spec"]["restartPolicy"]
            again = policy == "Always" or (policy == "OnFailure" and code != 0)
            if not again or one.stopping.is_set():
                return code
            restarts += 1
            said = f"back-off restarting failed container {spec['name']}"
            waiting = {"reason": "CrashLoopBackOff", "message": said}
            self._state(one, spec, where, restarts, waiting=waiting, last={"terminated": state})
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(one.stopping.wait(), self.crash_wait_s)

    async def _started(
        self, one: Running, spec: Object, where: str, restarts: int
    ) -> Container | None:
        """The container as soon as all that it needs is there; None: it was stopped before."""
        pod = one.pod
        while not one.stopping.is_set():
            try:
                container = self._made(one, spec, restarts)
                await container.start()
            except NotReadyYet as error:
                waiting = {"reason": error.reason, "message": error.message}
                self._state(one, spec, where, restarts, waiting=waiting)
                await self._news(one)
                continue
            one.containers[spec["name"]] = container
            one.logs.setdefault(spec["name"], []).append(container.log)
            self._state(one, spec, where, restarts, running={"startedAt": now()})
            if where == "containerStatuses":
                pod["status"]["phase"] = "Running"
                for kind in ("ContainersReady", "Ready"):
                    set_condition(pod, kind, "True")
                self.store.touch("pods", pod)
            return container
        return None

    async def _news(self, one: Running) -> None:
        waits = [asyncio.ensure_future(w) for w in (self.store.change(), one.stopping.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=0.2)
        for wait in waits:
            wait.cancel()

    def _made(self, one: Running, spec: Object, restarts: int) -> Container:
        pod, image = one.pod, spec["image"]
        kind = next((what for name, what in self.images.items() if name in image), "")
        if kind == "missing":
            said = f'Back-off pulling image "{image}": ErrImagePull: not found'
            tell(self.store, pod, "Warning", "Failed", f'Failed to pull image "{image}": not found')
            raise NotReadyYet("ImagePullBackOff", said)
        self._attached(pod)
        env = pod_parts.environment(self.store, pod, spec)
        own = self.folders.pod(pod["metadata"]["uid"])
        hosts = self.folders.hosts(pod["metadata"]["uid"])
        own.mkdir(parents=True, exist_ok=True)
        hosts.write_text(self._names(pod))
        return Container(
            folder=own / spec["name"] / str(restarts),
            command=pod_parts.command(spec, env),
            env=self.account.env | env,
            mounts=[
                *pod_parts.mounts(self.store, pod, spec, self.folders),
                *self.account.mounts,
                Mount(hosts, "/etc/hosts"),
            ],
            working_dir=spec.get("workingDir") or "/",
            termination_log=spec["terminationMessagePath"],
            hostname=hostname(pod),
            lacks={"without-python": "python*", "without-bash": "bash"}.get(kind, ""),
        )

    def _attached(self, pod: Object) -> None:
        """A ReadWriteOnce claim that another node has is not attached here."""
        for name in claims(pod):
            claim = self.store.find("persistentvolumeclaims", pod["metadata"]["namespace"], name)
            if claim is None or claim["spec"]["accessModes"] != ["ReadWriteOnce"]:
                continue
            for other in self.running.values():
                elsewhere = other.pod["spec"]["nodeName"] != pod["spec"]["nodeName"]
                ended = other.pod["status"].get("phase") in ENDED
                if elsewhere and not ended and name in claims(other.pod):
                    said = f'Multi-Attach error for volume "{name}"'
                    tell(self.store, pod, "Warning", "FailedAttachVolume", said)
                    raise NotReadyYet("ContainerCreating", "")

    async def _followed(self, one: Running, container: Container) -> int:
        """Its exit code. SIGTERM when it is to stop, SIGKILL when its grace is over."""
        ended = asyncio.ensure_future(container.wait())
        stop = asyncio.ensure_future(one.stopping.wait())
        try:
            await asyncio.wait([ended, stop], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                container.signal(signal.SIGTERM)
            while not ended.done():
                # Grace may become less while it ends.
                one.stopping.clear()
                again = asyncio.ensure_future(one.stopping.wait())
                both, grace = [ended, again], one.grace_s
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=grace)
                if not again.done():
                    container.signal(signal.SIGKILL)
                    again.cancel()
                    await ended
                one.stopping.set()
            return await ended
        finally:
            stop.cancel()

    def _terminated(self, one: Running, spec: Object, container: Container, code: int) -> Object:
        reason = "OOMKilled" if container.out_of_memory else "Error" if code else "Completed"
        message = container.message
        if not message and code and spec["terminationMessagePolicy"] == "FallbackToLogsOnError":
            message = container.log.read_bytes()[-2048:].decode(errors="replace")
        if container.cannot_start:
            reason, message = "StartError", _start_error(container.command[0])
        state = {"exitCode": code, "reason": reason, "finishedAt": now()}
        return {**state, "message": message} if message else state

    def _state(
        self,
        one: Running,
        spec: Object,
        where: str,
        restarts: int,
        *,
        last: Object | None = None,
        **state: Object,
    ) -> None:
        statuses = one.pod["status"].setdefault(where, [])
        old = next((have for have in statuses if have["name"] == spec["name"]), None)
        new = {
            "name": spec["name"],
            "image": spec["image"],
            "imageID": "",
            "ready": "running" in state,
            "started": "running" in state,
            "restartCount": restarts,
            "state": state,
            "lastState": last if last is not None else (old or {}).get("lastState", {}),
        }
        if new == old:
            return
        if old is not None:
            statuses.remove(old)
        statuses.append(new)
        self.store.touch("pods", one.pod)


def hostname(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"][:63])


def _published(pod: Object) -> list[str]:
    """By which names others find it."""
    if not (domain := pod["spec"].get("subdomain")):
        return []
    short = f"{hostname(pod)}.{domain}"
    return [f"{short}.{pod['metadata']['namespace']}.svc.cluster.local", short]


def _start_error(program: str) -> str:
    """As containerd says it."""
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        f'runc create failed: unable to start container process: exec: "{program}": stat '
        f"{program}: no such file or directory: unknown"
    )


def claims(pod: Object) -> list[str]:
    return [
        one["persistentVolumeClaim"]["claimName"]
        for one in pod["spec"].get("volumes", [])
        if "persistentVolumeClaim" in one
    ]
