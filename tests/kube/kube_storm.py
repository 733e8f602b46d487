"""What a cluster does to pods, at random times: a kill of everything, of the script alone, of the
agent; no memory; an eviction; a pod deleted; a node gone for good. And what a network does to the
person's kubectl: answers that are lost after their effect, connections and execs that are cut.
Seeded, and each kind has its turn in every round.

A person types the same commands again. Each script holds a lock in the claim, so two attempts of a
cell at once would be found.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_cluster import KubeCluster
from on_kube import OnKube, on_kube
from tiny_project import TRAIN, Said
from waiting import looks, until

STEPS = 8
STEP_S = 0.1
# A kill after a verb's end hits nothing, and is not counted.
VERB_S = 2.5
ALONE = """
import fcntl, sys
cell = sys.argv[sys.argv.index("--config") + 1].replace("/", "-")
busy = open(f"/checkpoints/{cell}.lock", "w")
try:
    fcntl.flock(busy, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open("/checkpoints/twice", "a").write(" ".join(sys.argv) + chr(10))
"""
# What makes the agent end, too: a cell's next try comes at once then, and else after a minute.
OF_PODS = ("container", "agent", "out-of-memory", "evict", "delete", "node", "script")
OF_LINKS = ("launch", "answer", "connection", "exec", "helper")


@dataclass
class KubeStorm:
    """One run under fire. `hits` counts what hit, by kind."""

    project: OnKube
    queues: Mapping[str, Sequence[str]]  # the cells of each
    seed: int
    kinds: Sequence[str] = (*OF_PODS, *OF_LINKS)
    dice: random.Random = field(init=False)
    hits: Counter[str] = field(default_factory=Counter)
    _round: list[str] = field(default_factory=list)
    _waiting: set[str] = field(default_factory=set)  # queues whose next retry would wait long
    _without_memory: set[str] = field(default_factory=set)  # cells: once each

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    @property
    def kube(self) -> KubeCluster:
        assert self.project.kube is not None
        return self.project.kube.spared

    @property
    def cells(self) -> list[str]:
        return [cell for cells in self.queues.values() for cell in cells]

    def run_queues(self, kills: int) -> None:
        """Launch as often as it needs, and hit what runs, until every cell is verified."""
        launch: subprocess.Popen[str] | None = None
        for _ in looks(lambda: f"{self} is over. {self._told()}"):
            if launch is not None and launch.poll() is not None:
                launch.communicate()
                launch = None
            if self._is_over():
                break
            is_to_hit = sum(self.hits.values()) < kills
            if not is_to_hit:
                self._let_go.touch()
            if launch is None and (
                self._a_queue_is_left() or (is_to_hit and self._next in OF_LINKS)
            ):
                launch = self.project.start("launch", "--no-smoke")
            time.sleep(self.dice.uniform(0.1, 1.0))
            if is_to_hit:
                self._hit_next(launch)
        if launch is not None:
            launch.communicate()
        self.kube.make("no-faults")

    def type_until_done(self, *words: str, kills: int) -> Said:
        """A verb that is killed `kills` times at random, with a network that drops answers, and
        then typed once more.
        """
        for _ in range(kills):
            self.kube.make("no-faults")
            self._of_network(self.dice.choice(("answer", "connection", "exec", "nothing")))
            with self.project.start(*words) as verb:
                try:
                    verb.communicate(timeout=self.dice.uniform(0.2, VERB_S))
                except subprocess.TimeoutExpired:
                    verb.kill()
                    verb.communicate()
                    self.hits[words[0]] += 1
        self.kube.make("no-faults")
        return self.project.boxcar(*words)

    @property
    def _let_go(self) -> Path:
        """Each queue's last cell waits for it, so that there is something to hit until the end."""
        return self.kube.claim_folder(self.project.claim) / "let-go"

    # --- one hit

    @property
    def _next(self) -> str:
        if not self._round:
            self._round = self.dice.sample(self.kinds, len(self.kinds))
        return self._round[-1]

    def _hit_next(self, launch: subprocess.Popen[str] | None) -> None:
        kind = self._next
        if kind == "launch":
            is_hit = launch is not None and launch.poll() is None
            if launch is not None and is_hit:
                launch.kill()
        elif kind == "helper":
            is_hit = self._hit_helper()
        elif kind in OF_LINKS:
            is_hit = launch is not None
            if is_hit:
                self._of_network(kind)
        else:
            is_hit = self._hit_pod(kind)
        if is_hit:
            self.hits[self._round.pop()] += 1

    def _of_network(self, kind: str) -> None:
        if kind == "exec":
            self.kube.make("cut-exec", bytes=self.dice.choice((0, 10, 1000, 100_000)))
        elif kind != "nothing":
            code = 500 if kind == "answer" else 0
            self.kube.fault(r"^(GET|POST|PATCH|DELETE) ", code, after=bool(self.dice.randrange(2)))

    def _hit_helper(self) -> bool:
        names = [name for name in self._running() if name.endswith("-helper")]
        for name in names:
            self.kube.kubectl("delete", "pod", name, "--wait=false")
        return bool(names)

    def _hit_pod(self, kind: str) -> bool:
        running = [(queue, pod) for pod in self._running() if (queue := self._queue_of(pod))]
        if kind == "script":
            running = [(queue, pod) for queue, pod in running if queue not in self._waiting]
        if not running:
            return False
        queue, pod = self.dice.choice(running)
        if not self._hit_one(kind, queue, pod):
            return False
        (self._waiting.add if kind == "script" else self._waiting.discard)(queue)
        return True

    def _hit_one(self, kind: str, queue: str, pod: str) -> bool:
        if kind in ("script", "agent"):
            words = "train.py --config" if kind == "script" else "onbox"
            return _kill_one(self._processes(pod), words)
        if kind == "out-of-memory":
            cell = self._cell_of(queue)
            if not cell or cell in self._without_memory:
                return False
            self._without_memory.add(cell)
        if kind == "node":
            return self._hit_node(pod)
        if kind == "delete":
            self.kube.kubectl("delete", "pod", pod, "--wait=false")
            return True
        with contextlib.suppress(OSError):  # it has just ended
            self.kube.make({"container": "kill"}.get(kind, kind), pod=pod)
            return True
        return False

    def _hit_node(self, pod: str) -> bool:
        node = str(self.kube.get("pod", pod)["spec"]["nodeName"])
        self.kube.make("lose-node", node=node)
        time.sleep(self.dice.uniform(0, 1))
        self.kube.make("delete-node", node=node)
        self.kube.make("add-node", node=node)
        return True

    # --- what there is

    def _running(self) -> list[str]:
        return [
            str(pod["metadata"]["name"])
            for pod in self.kube.pods()
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def _queue_of(self, pod: str) -> str:
        found = (queue for queue in self.queues if pod.startswith(self.project.job(queue) + "-"))
        return next(found, "")

    def _processes(self, pod: str) -> Iterator[tuple[int, str]]:
        uid = str(self.kube.get("pod", pod)["metadata"]["uid"])
        folder = f"/server/pods/{uid}/"
        tops = [pid for pid, words in _all_processes() if folder in words and "unshare" in words]
        return _below(tops)

    def _cell_of(self, queue: str) -> str:
        """Which cell is at work, as its journal has it."""
        cells = [
            str(event["data"]["cell"])
            for event in self.project.events(queue)
            if event["type"] == "cell.started"
        ]
        return cells[-1] if cells else ""

    def _verified(self, queue: str) -> set[str]:
        events = self.project.events(queue)
        return {event["data"]["cell"] for event in events if event["type"] == "cell.verified"}

    def _is_over(self) -> bool:
        done = all(set(cells) <= self._verified(queue) for queue, cells in self.queues.items())
        return done and all(self._is_complete(queue) for queue in self.queues)

    def _is_complete(self, queue: str) -> bool:
        conditions = self._job(queue).get("status", {}).get("conditions", [])
        return any(one["type"] == "Complete" for one in conditions)

    def _job(self, queue: str) -> dict[str, Any]:
        name = self.project.job(queue)
        jobs = [job for job in self.kube.all("jobs") if job["metadata"]["name"] == name]
        return jobs[0] if jobs else {}

    def _a_queue_is_left(self) -> bool:
        """Whether a queue has no Job, or one that has failed."""
        for queue in self.queues:
            conditions = self._job(queue).get("status", {}).get("conditions", [])
            if not self._job(queue) or any(one["type"] == "Failed" for one in conditions):
                return True
        return False

    def _told(self) -> str:
        return self.project.told() + self.kube.kubectl("get", "jobs,pods,events", "-o", "yaml")

    def __str__(self) -> str:
        return f"seed {self.seed}: {sum(self.hits.values())} hits {dict(self.hits)}"


def stormy_on_kube(
    folder: Path, kube: KubeCluster, seed: int, *, cells: int, kinds: Sequence[str] = ()
) -> KubeStorm:
    """Two queues with so many short cells each."""
    names = {queue: [f"{queue}-c{number}" for number in range(cells)] for queue in ("a", "b")}
    lines = {
        queue: [f"configs/{name}.json one {STEPS}" for name in names[queue]] for queue in names
    }
    made = on_kube(folder, kube, lines)
    (made.root / "train.py").write_text(ALONE + TRAIN)
    for some in names.values():
        for one in some:
            held = {"hold_at": 4, "until": "/checkpoints/let-go"} if one == some[-1] else {}
            made.write_config(one, seconds=STEP_S, **held)
    return KubeStorm(made, names, seed, **({"kinds": kinds} if kinds else {}))


def assert_nothing_is_left(storm: KubeStorm) -> None:
    """On the cluster, and of its processes."""
    assert storm.kube.all("jobs,pods,secrets") == [], str(storm)
    pods = str(storm.kube.folder / "server" / "pods")
    until(lambda: not any(pods in words for _, words in _all_processes()), "the end of all pods")


def assert_never_twice_at_once(storm: KubeStorm) -> None:
    twice = storm.kube.claim_folder(storm.project.claim) / "twice"
    assert not twice.exists(), twice.read_text()


def _kill_one(processes: Iterator[tuple[int, str]], words: str) -> bool:
    for pid, said in processes:
        if words in said:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
    return False


def _all_processes() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            said = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            yield int(entry.name), said.decode(errors="replace")


def _below(tops: Sequence[int]) -> Iterator[tuple[int, str]]:
    """All descendants, with their command lines."""
    for top in tops:
        with contextlib.suppress(OSError):
            children = [
                int(word)
                for task in Path(f"/proc/{top}/task").iterdir()
                for word in (task / "children").read_text().split()
            ]
            for pid in children:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                yield pid, words.decode(errors="replace")
            yield from _below(children)
