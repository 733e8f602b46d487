"""kill -9 at random times: of agents, wrappers, scripts and the laptop's verbs. Seeded.

What a person does about it is typed again after every kill: the same command. A cell's first retry
comes at once and its second after a minute, so a queue is hit once between two hits of its agent.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from living import Process, kill, living
from tiny_project import MakeProject, Said, TinyProject
from waiting import looks

STEPS = 8
STEP_S = 0.04
# A verb takes about this long; a kill after its end hits nothing, and is not counted.
VERB_S = 0.8
KINDS = ("script", "wrapper", "agent", "launch")


@dataclass
class Storm:
    """One run under fire. `hits` counts the kills that hit, by what they hit."""

    project: TinyProject
    queues: Mapping[str, Sequence[str]]  # the cells of each
    seed: int
    held: Sequence[str] = ()  # cells that end once everything was hit, however slow the hits come
    dice: random.Random = field(init=False)
    hits: Counter[str] = field(default_factory=Counter)
    _round: list[str] = field(default_factory=list)  # the kinds that have their turn yet
    _waiting: set[str] = field(default_factory=set)  # queues whose next retry would wait long

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    @property
    def cells(self) -> list[str]:
        return [cell for cells in self.queues.values() for cell in cells]

    def run_queues(self, kills: int) -> None:
        """Launch as often as it needs, and hit what runs, until every cell is verified."""
        last = sum(self.hits.values()) + kills
        launch: subprocess.Popen[str] | None = None
        for _ in looks(lambda: f"{self} is over. {self.project.told()}"):
            if self._is_over():
                break
            is_to_hit = sum(self.hits.values()) < last
            if not is_to_hit:
                for cell in self.held:
                    self.project.let_go(cell)
            if launch is not None and launch.poll() is not None:
                launch.communicate()
                launch = None
            if launch is None and (
                self._a_queue_is_left() or (is_to_hit and self._next == "launch")
            ):
                launch = self.project.as_programs.start("launch")
            time.sleep(self.dice.uniform(0.02, 0.3))
            if is_to_hit:
                self._hit_next()
        if launch is not None:
            launch.communicate()

    def type_until_done(self, *words: str, kills: int) -> Said:
        """A verb that is killed `kills` times at random, and then typed once more."""
        for _ in range(kills):
            self._start_and_kill(*words)
        return self.project.boxcar(*words)

    def _start_and_kill(self, *words: str) -> None:
        with self.project.start(*words) as verb:
            try:
                verb.communicate(timeout=self.dice.uniform(0.1, VERB_S))
            except subprocess.TimeoutExpired:
                verb.kill()
                verb.communicate()
                self.hits[words[0]] += 1

    def _hit_next(self) -> None:
        """What is next to be hit, if it runs now; each kind has its turn in every round."""
        running = [process for process in living(self.project.root) if _kind(process) == self._next]
        victims = [p for p in running if self._next in ("agent", "launch") or not self._waits(p)]
        if running and not victims:
            self._round.append("agent")
        elif victims and kill(victim := self.dice.choice(victims)):
            self._note(self._round.pop(), self._queue_of(victim))

    @property
    def _next(self) -> str:
        if not self._round:
            self._round = self.dice.sample(KINDS, len(KINDS))
        return self._round[-1]

    def _waits(self, process: Process) -> bool:
        return self._queue_of(process) in self._waiting

    def _note(self, kind: str, queue: str) -> None:
        self.hits[kind] += 1
        if kind == "agent":
            self._waiting.discard(queue)
        elif kind != "launch":
            self._waiting.add(queue)

    def _is_over(self) -> bool:
        return all(self._has_ended(queue) for queue in self.queues)

    def _has_ended(self, queue: str) -> bool:
        """Whether all its cells are verified, and its last agent said so."""
        types = self.project.types(queue)
        is_verified = set(self.queues[queue]) <= self._verified(queue)
        return is_verified and types[-1:] == ["agent.stopped"]

    def _verified(self, queue: str) -> set[str]:
        events = self.project.events(queue)
        return {event["data"]["cell"] for event in events if event["type"] == "cell.verified"}

    def _a_queue_is_left(self) -> bool:
        """Whether a queue has neither an agent nor come to its end."""
        at_work = {self._queue_of(p) for p in living(self.project.root) if _kind(p) == "agent"}
        return any(not self._has_ended(queue) for queue in self.queues if queue not in at_work)

    def _queue_of(self, process: Process) -> str:
        found = re.search(r"\b(q\d)\b", process.words)
        return found[1] if found else ""

    def __str__(self) -> str:
        return f"seed {self.seed}: {sum(self.hits.values())} kills {dict(self.hits)}"


@dataclass
class PoolStorm(Storm):
    """One on the members of a pool: `queues` has for each all cells of their file."""

    @property
    def cells(self) -> list[str]:
        return list(next(iter(self.queues.values())))

    def _has_ended(self, queue: str) -> bool:
        done = set[str]().union(*map(self._verified, self.queues))
        is_over = self.project.types(queue)[-1:] == ["agent.stopped"]
        return is_over and set(self.cells) <= done

    def _queue_of(self, process: Process) -> str:
        found = re.search(r"(?:q@|/boxes/)(box-\w)\b", process.words)
        return f"q@{found[1]}" if found else ""


def stormy_pool(make: MakeProject, seed: int, cells: int, **job: Any) -> PoolStorm:
    names, boxes = [f"c{number}" for number in range(cells)], ["box-a", "box-b", "box-c"]
    lines = [f"configs/{name}.json one {STEPS}" for name in names]
    made = make({"q": lines})
    made.write_job(queues={"queues/q.txt": boxes}, **job)
    queues = {f"q@{box}": names for box in boxes}
    storm = PoolStorm(replace(made, is_quick=False), queues, seed, names[-len(boxes) :])
    _write_configs(storm)
    return storm


def stormy(make: MakeProject, seed: int, queues: int = 2, cells: int = 4) -> Storm:
    """A storm on a new project of short cells. A cell's name begins with its queue's, so that the
    queue of a victim is known.
    """
    names = {f"q{q}": [f"q{q}-c{c}" for c in range(cells)] for q in range(1, queues + 1)}
    lines = {
        queue: [f"configs/{name}.json one {STEPS}" for name in names[queue]] for queue in names
    }
    # What is hit is found by its command line.
    held = [cells[-1] for cells in names.values()]
    storm = Storm(replace(make(lines), is_quick=False), names, seed, held)
    _write_configs(storm)
    return storm


def _write_configs(storm: Storm) -> None:
    for name in storm.cells:
        if name in storm.held:
            storm.project.hold(name, STEPS // 2, seconds=STEP_S)
        else:
            storm.project.write_config(name, seconds=STEP_S)


def assert_went_on(storm: Storm) -> None:
    """No attempt began before the last checkpoint: at most the step that was killed is repeated."""
    for cell in storm.cells:
        paths = list(
            storm.project.root.glob(f".boxcar/local/boxes/*/boxcar/*/cells/{cell}/out/history.txt")
        )
        assert len(paths) == 1
        done = 0
        for line in paths[0].read_text().splitlines():
            word, number = line.split()
            if word == "start":
                assert int(number) in (done, done - 1), f"{storm}: {cell} lost steps: {line}"
                done = int(number)
            else:
                assert int(number) == done + 1, f"{storm}: {cell}: {line} after step {done}"
                done = int(number)
        assert done == STEPS


def _kind(process: Process) -> str | None:
    """What a process is to the run; None for what nobody kills by itself (rsync, the checker)."""
    if process.words.rstrip().endswith("boxcar launch"):
        return "launch"
    if ".pyz agent " in process.words or "run_queue.sh" in process.words:
        return "agent"
    if "begin.py attempt " in process.words or "run_one.sh" in process.words:
        return "wrapper"
    return "script" if "train.py" in process.words else None
