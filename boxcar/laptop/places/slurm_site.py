"""A run on a cluster: Slurm starts the agents, and one login node answers for all queues.

Whatever is asked is one short call there, over ssh or in a child on this machine; what the agents
write is read from the mirror, as with boxes over ssh. The journal is believed first: an agent that
has just shown itself runs, whatever squeue said a moment ago.

The run ends by its jobs: they are cancelled, looked at until they are gone, and then its secrets
go. Only jobs that name this run on this tier are ever touched. Files stay: the site's file system
outlives every job. Not covered: what the used hours cost in fair share. Only the site knows.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common.home import Home
from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.hosts.ask_over_ssh import Hand
from boxcar.laptop.hosts.connection import TRIES, Ssh
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.scheduled import Scheduled
from boxcar.laptop.places.cluster_rules import judge_cluster, judge_nodes
from boxcar.laptop.places.mirrored_site import MirroredSite
from boxcar.laptop.places.site import StartedOrWhy
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import batch_jobs
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.laptop.run.open_run import ASK_TIMEOUT_S, Tell
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import DRAIN_OR_STOP
from boxcar.shared import paths
from boxcar.shared.environment import clean_environment
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    TemporaryError,
    message_of,
)
from boxcar.shared.files import heartbeat, receipt
from boxcar.shared.names import file_of, is_member
from boxcar.shared.sentence import _
from boxcar.shared.slurm.submitted import Task
from boxcar.shared.wire import box_asks, cluster_asks, run_asks
from boxcar.shared.wire.cluster_asks import SlurmLooked
from boxcar.shared.wire.question import A, Question

# How this machine is called where it is the login node itself.
HERE = _("this machine")
# Which cluster is meant, where a site says it so.
_SLURM_CONF = "SLURM_CONF"
# How a queue was started that is in Slurm's hands now.
SUBMITTED = "sbatch"
AUDIT_TIMEOUT_S = 120.0
SUBMIT_TIMEOUT_S = 120.0
# srun on two nodes, and where these are not free on one.
TRY_TIMEOUT_S = 240.0
# KillWait of a site may be minutes, and squeue is asked every 30 s.
GONE_WITHIN_S = 300.0
_LOOK_EVERY_S = 2.0


class SlurmSite(MirroredSite):
    """See Site. The boxes are names of the person's choice, and have one door. `tell` also hears of
    the jobs that are cancelled.
    """

    tick_s = 5.0
    # squeue is asked as often, and no oftener.
    poll_s = 30.0
    agents_see_ends: ClassVar[bool] = True
    end_fix: ClassVar[Command | str] = Command("status", note=_("once Slurm answers"))

    def __init__(self, project: Project, tell: Tell) -> None:
        super().__init__(project, tell)
        self.login = batch_jobs.login(project.profile.slurm, project.job.slurm)
        self._looked: SlurmLooked | None = None

    @property
    def _first(self) -> str:
        """The box whose name the one door goes by."""
        return self._names[0]

    # --- what is known

    def refresh(self, *, is_exact: bool = False) -> None:
        teardown = receipt.read_teardown(self.results.teardown)
        if teardown and teardown.finished_at:
            return
        first, before = self._first, {task.queue for task in self.tasks()}
        self._looked = None  # what was known of the jobs is not true for ever
        self._look([first], reader=[first])
        if first in self._replies:
            self._looked = self._ask_slurm(is_exact=is_exact)
            if before - {task.queue for task in self.tasks()}:
                # Who ended between the two answers has said so since, and is not dead.
                self._look([first], reader=[first])
        for box in self._names[1:]:
            # One answer is that of all; where it did not come, all are silent.
            if first in self._replies:
                self._replies[box] = self._replies[first]
                self._silent.pop(box, None)
            else:
                self._silent[box] = self._silent[first]
                self._replies.pop(box, None)

    def box_label(self, box: str) -> str:
        return _("{box} on the cluster", box=box)

    def seen_at(self, box: str) -> str | None:
        return self.mirror.seen_at(self._first)

    def doubts(self) -> list[str]:
        """Once for all queues: they have one door."""
        found = []
        if why := self._silent.get(self._first):
            seen_at = self.seen_at(self._first)
            known = (
                _("last heard from at {seen_at}", seen_at=seen_at)
                if seen_at
                else _("never heard from")
            )
            found = [
                _(
                    "{what} does not answer ({known}): {why}",
                    what=self.login or HERE,
                    known=known,
                    why=why,
                )
            ]
        elif self._looked and self._looked.problem:
            found = [
                _("cannot tell whether the agents run: {problem}", problem=self._looked.problem)
            ]
        return found + self.unread() + self.tier_doubts()

    def silent_boxes(self) -> dict[str, str]:
        if self._looked and self._looked.problem:
            return dict.fromkeys(self._names, self._looked.problem)
        return super().silent_boxes()

    def give_up_boxes(self, names: Iterable[str]) -> None:
        """Only the tier and the login node can be gone; a queue has no machine of its own."""
        names = list(names)
        members = {box for queue, box in self.plan.queues.items() if is_member(queue)}
        if named := [name for name in names if name in members]:
            raise InputError(
                _(
                    "--gone takes a machine, and a cluster queue has none. Once its job has ended, "
                    "the others of its pool go on with its cells. To end it"
                ),
                Command("stop", ("--box", named[0])),
            )
        if any(name in self._names for name in names):
            raise InputError(
                _("--gone takes a machine, and a cluster queue has none: down cancels its job")
            )
        super().give_up_boxes(names)

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
        is_there = any(
            task.has_nodes for queue in self.queues_on(box) for task in self._tasks(queue)
        )
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

    def left_waiting(self) -> list[str]:
        named = dict.fromkeys(task.queue for task in self.tasks() if task.waits and task.queue)
        left = (queue for queue in named if is_member(queue) and queue not in self.plan.queues)
        return [queue for queue in left if file_of(queue) in self.plan.boxes_of_files]

    def call_off(self, queues: Sequence[str]) -> tuple[str, ...]:
        return self.ask(self._first, cluster_asks.SlurmCancel(tuple(queues))).tasks

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
        if self.login is not None:
            return super().ask(box, question, timeout_s=timeout_s, tries=tries)
        conf = {_SLURM_CONF: os.environ[_SLURM_CONF]} if _SLURM_CONF in os.environ else {}
        return ask_over_ssh.ask_here(
            sys.executable,
            Home(self.project.root),
            HERE,
            question,
            self._run_on(box),
            environ=clean_environment(os.environ) | conf,
            timeout_s=timeout_s,
        )

    def who_answers(self, box: str) -> str:
        return self.login or HERE

    def folder_on(self, box: str, path: str) -> Path | Remote:  # type: ignore[override]
        return paths.on_box(path) if self.login is None else super().folder_on(box, path)

    def published_folder(self, cell: str) -> Path | Remote:  # type: ignore[override]
        return self.folder_on(self._first, str(self.project.on_tier.cell(cell)))

    # --- how a run is launched

    @property
    def has_mounted_tier(self) -> bool:
        return True

    @property
    def jobs(self) -> list[BatchJob]:
        return batch_jobs.of_project(self.project)

    def start_question(self, start: run_asks.Start) -> None:
        return None

    def start(self, starts: Mapping[str, run_asks.Start]) -> StartedOrWhy:
        """One submit for all queues with the same options."""
        started: dict[str, str] = {}
        errors: dict[str, Exception] = {}
        for job in self.jobs:
            indices = batch_jobs.indices(job, list(starts))
            if not indices:
                continue
            try:
                done = self._submit(job, indices, starts)
            except (BoxcarError, OSError) as error:
                errors |= dict.fromkeys(indices.values(), error)
                continue
            started |= dict.fromkeys(done.queues, SUBMITTED)
            started |= dict.fromkeys(done.left_alone, run_asks.RUNNING)
        return started, errors

    def judged(self, *, is_thorough: bool = False) -> list[Row]:
        """What the cluster says of what is asked for, before it is asked for."""
        jobs = self.jobs
        options = {job.script: tuple(job.options.lines()) for job in jobs}
        question = cluster_asks.SlurmAudit(self.plan.boxes[0].credentials, options)
        facts = self.ask(self._first, question, timeout_s=AUDIT_TIMEOUT_S)
        rows = judge_cluster(facts, jobs, self.plan, self.login)
        if is_thorough and not any(row.verdict == "refuse" for row in rows):
            for job in jobs:
                rows += judge_nodes(self._tried(job), job, self.plan)
        return rows

    def _tried(self, job: BatchJob) -> cluster_asks.SlurmTried:
        """On nodes as its queues would get them, for a moment."""
        options = [word for word in job.options.lines() if not word.startswith("--time=")]
        profile = self.project.profile
        question = cluster_asks.SlurmTry(
            tuple(options), self.plan.training_python, profile.hook, profile.slurm.container
        )
        return self.ask(self._first, question, timeout_s=TRY_TIMEOUT_S)

    def _submit(
        self, job: BatchJob, indices: Mapping[int, str], starts: Mapping[str, run_asks.Start]
    ) -> cluster_asks.SlurmSubmitted:
        queues: Sequence[str] = list(indices.values())
        [digest] = {starts[queue].digest for queue in queues}
        begins = tuple(
            cluster_asks.Begin(queue, starts[queue].start_index, starts[queue].start_cell)
            for queue in queues
            if starts[queue].start_index
        )
        named = {str(index): queue for index, queue in indices.items()}
        question = cluster_asks.SlurmSubmit(
            digest,
            job.script,
            named,
            begins,
            most_lead_s=batch_jobs.most_lead_s(job.options.time_s),
            is_per_cell=job.options.is_per_cell,
        )
        box = self.plan.queues[queues[0]]
        return self.ask(box, question, timeout_s=SUBMIT_TIMEOUT_S)

    # --- its end

    def end_price(self) -> list[str]:
        paths = dict.fromkeys(box.credentials for box in self.plan.boxes)
        waiting = [
            _("the waiting job {task}", task=task.task) for task in self.tasks() if task.waits
        ]
        profile, storage = self.project.profile, self.project.profile.storage
        lost = {storage.data} - set(profile.meter_stop.preserves)
        return [
            *(_("credentials: {path} on the login node", path=path) for path in paths),
            *waiting,
            *(
                _("{head}: {text}", head=name, text=storage.tiers[name].path or _("on the nodes"))
                for name in lost
            ),
        ]

    def end_keeps(self) -> list[str]:
        plan = self.plan
        data = dict.fromkeys(box.data_dir for box in plan.boxes)
        places = [f"{plan.durable_dir}/boxcar/{plan.run}", *(f"{folder}" for folder in data)]
        return [_("{place} on the cluster", place=place) for place in places]

    def end_boxes(self, steps: Steps) -> None:
        """Harmless to repeat. Raises TemporaryError where a job stays, or Slurm is silent."""
        tasks = self.ask(self._first, cluster_asks.SlurmCancel()).tasks
        if tasks:
            self.tell(f"cancelled: {', '.join(tasks)}")
            self._wait_until_gone()
        for box in self.plan.boxes:
            if box.name in steps.now.boxes:
                continue
            question = box_asks.End(self.queues_on(box.name), box.credentials)
            alive = self.ask(box.name, question).alive
            if alive:
                named = ", ".join(str(at_work.queue or at_work.cell) for at_work in alive)
                raise TemporaryError(
                    _(
                        "{named} is still running although its job is gone, so nothing was ended",
                        named=named,
                    ),
                    DRAIN_OR_STOP,
                )
            steps.ended(box.name)

    def _wait_until_gone(self) -> None:
        """What scancel said proves nothing: squeue must have no such job any more."""
        until = time.monotonic() + GONE_WITHIN_S
        while True:
            looked = self.ask(self._first, cluster_asks.SlurmLook())
            left = [task.task for task in looked.tasks if task.waits or task.has_nodes]
            if not looked.problem and not left:
                return
            if time.monotonic() > until:
                raise TemporaryError(
                    _(
                        "{what}. The run's files and secrets were kept. Check on the login node "
                        "(squeue --me), then",
                        what=looked.problem or _("{jobs} does not end", jobs=", ".join(left)),
                    ),
                    Command("down"),
                )
            time.sleep(_LOOK_EVERY_S)

    # --- inside

    def _hand(self, box: str) -> Hand:
        assert self.login is not None
        if self.login not in self._hands:
            ssh = Ssh(self.login, Home(self.project.root), self.tell)
            tier, agent = self.plan.durable_dir, ask_over_ssh.agent_program()
            hand = Hand(ssh, self.project.profile, tier, *agent, is_one_machine=False)
            self._hands[self.login] = hand
        return self._hands[self.login]

    def _ask_slurm(self, *, is_exact: bool) -> SlurmLooked:
        try:
            return self.ask(self._first, cluster_asks.SlurmLook(is_exact), tries=2)
        except (BoxcarError, OSError) as error:
            return SlurmLooked(self._replies[self._first].at, (), message_of(error).text)

    def _tasks(self, queue: str) -> list[Task]:
        return [task for task in self.tasks() if task.queue == queue]

    def _queues_of(self, box: str) -> tuple[str, ...]:
        return tuple(self.plan.queues)

    def _has_its_own_word(self, name: str, box: str) -> bool:
        return False

    def _pause(self, box: str) -> None:
        """A login node is asked again whenever somebody looks: one call, and it is everybody's."""
