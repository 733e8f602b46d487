"""All of it in one process: `python -m kube_server FOLDER --port P [--version 1.37]`.

`POST /test/WHAT` with a JSON object is how a test makes things happen; kubectl has no part in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from aiohttp import web

from . import kinds
from .account import Account
from .admission import QuotaController
from .api import Api, Fault
from .collector import Collector, unreachable, without_node
from .events import tell
from .job_controller import JobController
from .job_sets import JobSetController
from .kubelet import Kubelets, set_condition
from .pod_parts import Folders
from .scheduler import DEFAULT_CLASS, Scheduler
from .store import Object, Store
from .streams import Cut, Streams

_RECONCILE_EVERY_S = 0.1


class Server:
    def __init__(self, folder: Path, version: tuple[int, int]) -> None:
        self.store = Store()
        folders = Folders(folder)
        self.account = Account(folder / "account")
        self.kubelets = Kubelets(self.store, folders, self.account)
        self.streams = Streams(self.store, self.kubelets)
        self.api = Api(
            self.store,
            version,
            {
                ("pods", "log"): self.streams.logs,
                ("pods", "exec"): self.streams.exec,
                ("pods", "eviction"): self._eviction,
            },
            self.account,
        )
        self.jobs = JobController(self.store, self.api.admit)
        scheduler = Scheduler(self.store, folders)
        sets = JobSetController(self.store, self.api.admit)
        collector, quotas = Collector(self.store), QuotaController(self.store)
        self.loops = (sets, self.jobs, scheduler, self.kubelets, collector, quotas)
        self._begin()

    def _begin(self) -> None:
        for name in ("default", "kube-system"):
            self._made("namespaces", "Namespace", name, status={"phase": "Active"})
        for number in (1, 2):
            self._add_node({"node": f"node-{number}"})
        shared = {"annotations": {DEFAULT_CLASS: "true"}}
        for name, provisioner, meta, modes in (
            ("shared", "tests/folder", shared, "ReadWriteMany ReadWriteOnce"),
            ("disk", "tests/folder", {}, "ReadWriteOnce"),
            ("never", "tests/never", {}, ""),
        ):
            one = self._made("storageclasses", "StorageClass", name, provisioner=provisioner)
            one["metadata"].update(meta)
            one.update(parameters={"modes": modes}, volumeBindingMode="Immediate")
            one["reclaimPolicy"] = "Delete"

    def _add_node(self, asked: Object) -> None:
        """A new one, or a machine that comes back after its node was deleted."""
        self.kubelets.lost.discard(asked["node"])
        node = self._made("nodes", "Node", asked["node"], status={})
        room = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "4"}
        node["status"].update(allocatable=room, capacity=dict(room))
        set_condition(node, "Ready", "True", "KubeletReady")

    def _made(self, plural: str, kind: str, name: str, **rest: Any) -> Object:
        version = "storage.k8s.io/v1" if plural == "storageclasses" else "v1"
        one = {"kind": kind, "apiVersion": version, "metadata": {"name": name}, **rest}
        return self.store.create(plural, one)

    async def control(self) -> None:
        """The control plane, until it is cancelled."""
        while True:
            before = -1
            while before != self.store.version:
                before = self.store.version
                for loop in self.loops:
                    loop.reconcile()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.store.change(), _RECONCILE_EVERY_S)

    async def _eviction(self, asked: Any) -> web.StreamResponse:
        pod = self.store.get("pods", asked.namespace, asked.name)
        said = "Eviction API: evicting"
        set_condition(pod, "DisruptionTarget", "True", "EvictionByEvictionAPI", said)
        self.store.delete("pods", pod)
        return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    # -- what a test asks for

    async def test(self, request: web.Request) -> web.StreamResponse:
        ways: dict[str, Callable[[Object], object]] = {
            "fault": lambda asked: self.api.faults.append(Fault(**asked)),
            "no-faults": self._no_faults,
            "pods-may-read": lambda asked: setattr(self.account, "may_read_pods", True),
            "end-watches": self._end_watches,
            "cut-exec": lambda asked: setattr(self.streams, "cut", Cut(**asked)),
            "deny": lambda asked: self.api.denied.append(asked["words"]),
            "image": lambda asked: self.kubelets.images.update({asked["name"]: asked["is"]}),
            "out-of-memory": self._out_of_memory,
            "kill": self._kill,
            "evict": self._evict,
            "preempt": self._preempt,
            "lose-node": self._lose_node,
            "add-node": self._add_node,
            "delete-node": lambda asked: without_node(self.store, asked["node"]),
            "room": self._room,
            "install": lambda asked: kinds.install(asked["group"]),
        }
        try:
            ways[request.match_info["what"]](await request.json())
        except KeyError as error:
            return web.json_response({"error": f"not there: {error}"}, status=400)
        return web.json_response({})

    def _no_faults(self, asked: Object) -> None:
        self.api.faults.clear()
        self.api.denied.clear()
        self.account.may_read_pods = False
        self.streams.cut = None

    def _end_watches(self, asked: Object) -> None:
        self.api.watches_end.set()
        self.api.watches_end = asyncio.Event()

    def _pod(self, asked: Object) -> Object:
        return self.store.get("pods", asked.get("namespace", "default"), asked["pod"])

    def _kill(self, asked: Object) -> None:
        """Every process of the pod ends at once."""
        running = self.kubelets.running[self._pod(asked)["metadata"]["uid"]]
        for container in running.containers.values():
            container.signal(signal.SIGKILL)

    def _out_of_memory(self, asked: Object) -> None:
        """The kernel ends the whole container, as kubelets of 1.28 and later have it."""
        running = self.kubelets.running[self._pod(asked)["metadata"]["uid"]]
        for container in running.containers.values():
            container.out_of_memory = True
        self._kill(asked)

    def _evict(self, asked: Object) -> None:
        said = asked.get("message", "The node was low on resource: memory.")
        self.kubelets.evict(self._pod(asked), "Evicted", said)

    def _preempt(self, asked: Object) -> None:
        """A pod of a higher priority gets its place: of the pod only the event is left."""
        pod = self._pod(asked)
        said = "default-scheduler: preempting to accommodate a higher priority pod"
        set_condition(pod, "DisruptionTarget", "True", "PreemptionByScheduler", said)
        node = pod["spec"]["nodeName"]
        tell(self.store, pod, "Normal", "Preempted", f"Preempted by pod {uuid4()} on node {node}")
        self.store.delete("pods", pod)

    def _lose_node(self, asked: Object) -> None:
        name = asked["node"]
        node = self.store.get("nodes", "", name)
        set_condition(node, "Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting")
        self.store.touch("nodes", node)
        self.kubelets.lose(name, power=asked.get("power", True))
        unreachable(self.store, name)

    def _room(self, asked: Object) -> None:
        """`{"node": "node-1", "nvidia.com/gpu": "0"}`"""
        node = self.store.get("nodes", "", asked.pop("node"))
        node["status"]["allocatable"].update(asked)
        self.store.touch("nodes", node)


async def serve(folder: Path, port: int, version: tuple[int, int]) -> None:
    """Until SIGTERM. `ready` in the folder says that it answers."""
    server = Server(folder, version)
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/test/{what}", server.test)
    app.router.add_route("*", "/{path:.*}", server.api.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    if (trusts := server.account.certificate()) is not None:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trusts).start()
        server.account.port = int(runner.addresses[-1][1])
    control = asyncio.ensure_future(server.control())
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    (folder / "ready").write_text(json.dumps({"port": port}))
    wait = asyncio.ensure_future(ended.wait())
    done, _ = await asyncio.wait([control, wait], return_when=asyncio.FIRST_COMPLETED)
    control.cancel()
    await server.kubelets.end()
    server.api.watches_end.set()
    await runner.cleanup()
    shutil.rmtree(folder / "pods", ignore_errors=True)
    if control in done:
        control.result()
