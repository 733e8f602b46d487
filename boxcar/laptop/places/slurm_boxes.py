"""The queues of a cluster: one login node answers for all of them, and Slurm says what it does.

Whatever is asked is one short call there, over ssh or in a child on this machine; what the agents
write is read from the mirror, as with boxes over ssh. The journal is believed first: an agent that
has just shown itself runs, whatever squeue said a moment ago.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.hosts.ask_over_ssh import Hand
from boxcar.laptop.hosts.boxes import ASK_TIMEOUT_S
from boxcar.laptop.hosts.connection import TRIES, Ssh
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.scheduled import Scheduled
from boxcar.laptop.places.ssh_boxes import SshBoxes
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import batch_jobs
from boxcar.shared import paths
from boxcar.shared.environment import clean_environment
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, message_of
from boxcar.shared.files import heartbeat, receipt
from boxcar.shared.slurm.submitted import Task
from boxcar.shared.wire import cluster_asks
from boxcar.shared.wire.cluster_asks import SlurmLooked
from boxcar.shared.wire.question import A, Question, RunOnBox

# How this machine is called where it is the login node itself.
HERE = "this machine"
# Which cluster is meant, where a site says it so.
_SLURM_CONF = "SLURM_CONF"


class SlurmBoxes(SshBoxes):
    """See boxes.Boxes. The boxes are names of the person's choice, and have one door."""

    tick_s = 5.0

    def __init__(self, project: Project, tell: Callable[[str], None]) -> None:
        super().__init__(project, tell)
        self.login = batch_jobs.login(project.profile.slurm, project.job.slurm)
        self._door: Hand | None = None
        self._looked: SlurmLooked | None = None

    # --- what is known

    def refresh(self, *, is_exact: bool = False) -> None:
        teardown = receipt.read_teardown(self._project.results.teardown)
        if teardown and teardown.finished_at:
            return
        first = self._names[0]
        self._looked = None  # what was known of the jobs is not true for ever
        self._look([first], reader=[first])
        if first in self._replies:
            self._look_at_slurm(first, cluster_asks.SlurmLook(is_exact))
        for box in self._names[1:]:
            # One answer is that of all; where it did not come, all are silent.
            if first in self._replies:
                self._replies[box] = self._replies[first]
                self._silent.pop(box, None)
            else:
                self._silent[box] = self._silent[first]
                self._replies.pop(box, None)

    def label(self, box: str) -> str:
        return f"{box} of the cluster"

    def seen_at(self, box: str) -> str | None:
        return self.mirror.seen_at(self._names[0])

    def doubts(self) -> list[str]:
        """Once for all queues: they have one door."""
        found = []
        first = self._names[0]
        if first in self._silent:
            seen_at = self.seen_at(first)
            known = f"what is known is as of {seen_at}" if seen_at else "nothing is known"
            found = [f"{self.login or HERE} does not answer, and {known}: {self._silent[first]}"]
        elif self._looked and self._looked.problem:
            found = [f"whether the agents run is not known: {self._looked.problem}"]
        return found + self.unread() + self.tier_doubts()

    def silent(self) -> dict[str, str]:
        if self._looked and self._looked.problem:
            return dict.fromkeys(self._names, self._looked.problem)
        return super().silent()

    def give_up(self, names: Iterable[str]) -> None:
        """Only the tier and the login node can be gone; a queue has no machine of its own."""
        if any(name in self._names for name in names):
            raise InputError(
                "--gone names a machine, and a queue of a cluster has none: down cancels its job"
            )
        super().give_up(names)

    def has_lost_its_tier(self, box: str) -> bool:
        return False

    def is_agent_alive(self, queue: str) -> bool | None:
        """Whether its job has nodes, or the agent has shown itself since squeue was asked."""
        looked = self._looked
        if looked is None or looked.problem:
            return None
        if any(task.has_nodes for task in self._tasks(queue)):
            return True
        with contextlib.suppress(DamagedError):
            beat = heartbeat.read_heartbeat(self.tier.heartbeat(queue))
            return beat is not None and beat.at > looked.at
        return False

    def is_attempt_alive(self, box: str, cell: str) -> bool | None:
        """Nothing of a job outlives it; while it runs only its agent can say."""
        if self._looked is None or self._looked.problem:
            return None
        queues = [queue for queue, at in self._project.plan.queues.items() if at == box]
        is_there = any(task.has_nodes for queue in queues for task in self._tasks(queue))
        return None if is_there else False

    def progress_at(self, box: str, cell: str) -> str | None:
        return None

    def listing_age_s(self, box: str) -> float:
        return 0.0

    def scheduled(self, queue: str) -> Scheduled | None:
        waiting = [task for task in self._tasks(queue) if task.waits]
        if not waiting:
            return None
        task = waiting[-1]
        return Scheduled(task.task, task.reason, task.start_at)

    def call_off(self, queues: Sequence[str]) -> tuple[str, ...]:
        return self.ask(self._names[0], cluster_asks.SlurmCancel(tuple(queues))).tasks

    def tasks(self) -> list[Task]:
        """What of the run has not ended, as far as squeue was asked."""
        found = self._looked.tasks if self._looked else ()
        return [task for task in found if task.waits or task.has_nodes]

    # --- what is done

    def ask(
        self,
        box: str,
        question: Question[A],
        *,
        timeout_s: float = ASK_TIMEOUT_S,
        tries: int = TRIES,
    ) -> A:
        plan = self._project.plan
        run = RunOnBox(plan.run, plan.durable_dir, plan.box(box).data_dir)
        if self.login is None:
            return self._ask_here(question, run, timeout_s)
        return self._hand(box).ask(question, run, timeout_s=timeout_s, tries=tries)

    def place(self, box: str, path: str) -> Path | Remote:  # type: ignore[override]
        return paths.on_box(path) if self.login is None else super().place(box, path)

    def cell_at(self, cell: str) -> Path | Remote:  # type: ignore[override]
        return self.place(self._names[0], str(self._project.on_tier.cell(cell)))

    def close(self) -> None:
        if self._door is not None:
            self._door.ssh.close()

    # --- inside

    def _hand(self, box: str) -> Hand:
        if self._door is None:
            assert self.login is not None
            ssh = Ssh(self.login, Home(self._project.root), self._tell)
            name, data = self._onbox
            tier = self._project.plan.durable_dir
            self._door = Hand(ssh, self._project.profile, tier, name, data, is_one_machine=False)
        return self._door

    def _ask_here(self, question: Question[A], run: RunOnBox, timeout_s: float) -> A:
        conf = {_SLURM_CONF: os.environ[_SLURM_CONF]} if _SLURM_CONF in os.environ else {}
        command = ask_over_ssh.command(
            sys.executable, ask_over_ssh.agents_file(Home(self._project.root))
        )
        environ = clean_environment(os.environ) | conf
        return ask_over_ssh.ask(command, HERE, question, run, environ=environ, timeout_s=timeout_s)

    def _look_at_slurm(self, box: str, question: cluster_asks.SlurmLook) -> None:
        try:
            self._looked = self.ask(box, question, tries=2)
        except (BoxcarError, OSError) as error:
            at = self._replies[box].at
            self._looked = SlurmLooked(at, (), message_of(error).text)

    def _tasks(self, queue: str) -> list[Task]:
        return [task for task in self.tasks() if task.queue == queue]

    def _queues_of(self, box: str) -> tuple[str, ...]:
        return tuple(self._project.plan.queues)

    def _has_its_own_word(self, name: str, box: str) -> bool:
        return False

    def _pause(self, box: str) -> None:
        """A login node is asked again whenever somebody looks: one call, and it is everybody's."""
