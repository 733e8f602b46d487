"""A run on Kubernetes: a Job for each queue, and a helper pod through which files travel.

The person's own kubectl reaches the cluster. A question goes to the queue's own pod, where the
cell's scratch and processes are, and to the helper pod where that is not there. What the agents
write is read from the mirror, as with boxes over ssh.

The run ends by its Jobs: they are deleted by label and uid, and looked for until they are gone.
The claim stays, and so does the namespace. Not covered: what the node pool costs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from boxcar.laptop.common.home import Home
from boxcar.laptop.fitness.rules import ALL, Row
from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.hosts.ask_over_ssh import Hand
from boxcar.laptop.hosts.identify import NoPython
from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.pod_link import PodLink
from boxcar.laptop.hosts.scheduled import JobEnd, Scheduled
from boxcar.laptop.hosts.ssh_errors import LinkCut, Unreachable
from boxcar.laptop.places import kube_claim, kube_ends, kube_facts, kube_jobsets, kube_rules
from boxcar.laptop.places.helper_pod import HelperPod
from boxcar.laptop.places.kube_starts import KubeStarts
from boxcar.laptop.places.mirrored_site import MirroredSite
from boxcar.laptop.places.site import StartedOrWhy
from boxcar.laptop.project import launches
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import kube_jobset, kube_objects
from boxcar.laptop.run import kube_pods
from boxcar.laptop.run.open_run import Tell
from boxcar.laptop.teardown.gate import Steps
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    TemporaryError,
    message_of,
)
from boxcar.shared.files import receipt
from boxcar.shared.names import file_of, is_member
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks

_LOOK_EVERY_S = 1.0


class KubeSite(MirroredSite):
    """See Site. The boxes are names of the person's choice: a queue each."""

    tick_s = 2.0
    poll_s = 10.0
    end_fix: ClassVar[Command | str] = Command("status", note=_("once the cluster answers"))

    def __init__(self, project: Project, tell: Tell) -> None:
        super().__init__(project, tell)
        self.options: KubeOptions = project.profile.kubernetes
        folder = self.plan.durable_dir
        self._owner = kube_objects.Owner(self.plan.run, self.options.claim or "", folder)
        self.kubectl = Kubectl(self.options.context, self.options.namespace)
        self._starts = KubeStarts(self.kubectl, self._owner, project, self._read_on_helper)
        self._jobs: dict[str, Any] = {}  # by name
        self._pods: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []  # of pods that the cluster has ended
        self._is_told = False
        self._problem: BoxcarError | None = None
        self._is_looked = False
        name = kube_objects.helper_name(self._owner)
        self._helper = HelperPod(self.kubectl, name, self._helper_object, tell)

    # --- what is known

    def refresh(self, *, is_exact: bool = False) -> None:
        self._look_at_cluster()
        super().refresh(is_exact=is_exact)
        self._forget_silent()

    def _forget_silent(self) -> None:
        """Once the claim is said to be gone: a queue without a pod has nothing to tell then."""
        if self.is_gone(self.plan.durable_dir):
            self._silent = {box: why for box, why in self._silent.items() if self._own_pod(box)}
            self._helper.problem = None

    def is_out_of_reach(self, box: str) -> bool:
        is_gone = self.is_gone(self.plan.durable_dir) and not self._own_pod(box)
        return is_gone or super().is_out_of_reach(box)

    def box_label(self, box: str) -> str:
        return _("{box} on the cluster", box=box)

    def doubts(self) -> list[str]:
        if self._problem:
            told = _(
                "cannot tell whether the agents run: {problem}",
                problem=message_of(self._problem).text,
            )
            return [told, *self.unread(), *self.tier_doubts()]
        if why := self._helper.problem:
            # Once, and not of each queue that it would have answered for.
            return [message_of(why).text, *self.unread(), *self.tier_doubts()]
        return super().doubts()

    def has_lost_its_tier(self, box: str) -> bool:
        return False

    def give_up_boxes(self, names: Iterable[str]) -> None:
        names = list(names)
        members = {box for queue, box in self.plan.queues.items() if is_member(queue)}
        if named := [name for name in names if name in members]:
            raise InputError(
                _(
                    "--gone takes a machine, and a cluster queue has none. To give its cells to "
                    "the others, take {box} out of queues in job.yaml, then",
                    box=named[0],
                ),
                Command("launch"),
            )
        if any(name in self._names for name in names):
            raise InputError(
                _("--gone takes a machine, and a cluster queue has none: down deletes its Job")
            )
        super().give_up_boxes(names)
        self._forget_silent()

    def is_agent_alive(self, queue: str) -> bool | None:
        """Whether its pod runs: a lock says nothing on file systems that do not know flock."""
        if self._problem or not self._is_looked:
            return None
        return any(kube_pods.is_running(pod) for pod in self._pods_of(queue))

    def is_attempt_alive(self, box: str, cell: str) -> bool | None:
        """None is left of it where the cluster has no pod in which it could run."""
        told, queues = super().is_attempt_alive(box, cell), self.queues_on(box)
        if told is not None or self._problem or not self._is_looked or not queues:
            return told
        pods = [pod for queue in queues for pod in self._pods_of(queue)]
        return False if all(map(kube_pods.has_ended, pods)) else None

    def listing_age_s(self, box: str) -> float:
        return 0.0

    def scheduled(self, queue: str) -> Scheduled | None:
        job = self._job_of(queue)
        if job is None:
            return None
        pods = self._pods_of(queue)
        is_over = kube_pods.is_finished(job) or not all(map(kube_pods.has_ended, pods))
        refused = "" if is_over else kube_facts.why_not_begun(self.kubectl, job, pods)
        return kube_pods.scheduled(job, pods, refused)

    def waiting_beside(self, queue: str) -> tuple[str, ...]:
        """While its agent runs: `scheduled` says it of both where none does."""
        job = self._jobs.get(kube_objects.job_beside(self._owner, queue))
        if job is None or kube_pods.is_finished(job) or not self.is_agent_alive(queue):
            return ()
        pods = [pod for pod in self._all_pods_of(queue) if not kube_jobset.is_agents(pod)]
        is_short = sum(not kube_pods.has_ended(pod) for pod in pods) < job["spec"]["parallelism"]
        refused = kube_facts.why_not_begun(self.kubectl, job, pods) if is_short else ""
        waiting = kube_pods.not_begun(job, pods, refused)
        return tuple(_("{pod} has not begun ({reason})", **one) for one in waiting)

    def agent_log(self, box: str, queue: str, lines: int) -> str:
        """Of its newest pod: what a container prints lies with the cluster."""
        pods = sorted(self._pods_of(queue), key=lambda pod: pod["metadata"]["creationTimestamp"])
        names = [str(pod["metadata"]["name"]) for pod in pods if kube_pods.has_begun(pod)]
        if not names:
            return ""
        said = self.kubectl.run("logs", names[-1], f"--tail={lines}")
        return said.decode("utf-8", "replace").strip()

    def left_waiting(self) -> list[str]:
        named = {kube_objects.plain_name(queue): queue for queue in self._left_members()}
        of_jobs = (job["metadata"]["labels"][kube_objects.QUEUE] for job in self._jobs.values())
        left = dict.fromkeys(named[label] for label in of_jobs if label in named)
        return [queue for queue in left if self.scheduled(queue)]

    def call_off(self, queues: Sequence[str]) -> tuple[str, ...]:
        """Delete the Jobs, unless their agents have begun meanwhile."""
        jobs = []
        for queue in queues:
            there = self._of_run("jobs,pods", queue)
            if not any(one["kind"] == "Pod" and kube_pods.is_running(one) for one in there):
                jobs += [one for one in there if one["kind"] == "Job"]
        self._delete(kube_jobset.wholes(jobs))
        return tuple(str(job["metadata"]["name"]) for job in jobs)

    def has_ended(self, queue: str) -> bool:
        """Asked anew: no Job will start its agent, and none of its pods is left that may run."""
        there = self._of_run(kube_jobsets.kinds(self.kubectl, "jobs,pods"), queue)
        pods = [one for one in there if one["kind"] == "Pod"]
        is_left = any(map(kube_pods.is_at_work, there))
        return not is_left and all(map(kube_pods.has_ended, pods))

    def _left_members(self) -> list[str]:
        """Of pools in the job those that are in it no more."""
        known = self.tier.known_queues(self.plan.queues)
        left = (queue for queue in known if is_member(queue) and queue not in self.plan.queues)
        return [queue for queue in left if file_of(queue) in self.plan.boxes_of_files]

    def ends(self, queue: str) -> tuple[JobEnd, ...]:
        if (job := self._job_of(queue)) is None:
            return ()
        return kube_pods.ends(job["metadata"]["name"], [job, *self._pods_of(queue)], self._events)

    # --- how a run is launched

    @property
    def launch_place(self) -> dict[str, str]:
        """Of another one nothing of a launched run would be found, and all be taken for ended."""
        return {
            "context": self.options.context or "",
            "namespace": self.options.namespace or "",
            "claim": self._owner.claim,
            "storage: durable": self._owner.folder,
        }

    def _refuse_another_place(self) -> None:
        before, now = launches.newest_place_of(self.results), self.launch_place
        changed = [key for key in now if before.get(key, now[key]) != now[key]]
        if not changed or self._is_torn_down():
            return
        raise InputError(
            _(
                "the run was launched with {key}: {old}, and profiles/{name}.yaml says {new} now. "
                "Its Jobs are where they were: put that back. To go elsewhere, end the run first",
                key=changed[0],
                old=before[changed[0]] or "-",
                new=now[changed[0]] or "-",
                name=self.project.profile.name,
            )
        )

    def _is_torn_down(self) -> bool:
        begun = receipt.read_teardown(self.results.teardown)
        return begun is not None and begun.finished_at is not None

    @property
    def has_mounted_tier(self) -> bool:
        return True

    def refuse_launch(self) -> None:
        self._check_options()

    def judged(self, *, is_thorough: bool = False) -> list[Row]:
        """What the cluster says of what is asked for, before it is asked for."""
        self._check_options()
        version = self.kubectl.server_version()
        self._look_at_cluster()
        if self._problem:
            raise self._problem
        begun = {name for name, job in self._jobs.items() if kube_pods.is_at_work(job)}
        made = {queue: self._starts.job(queue, "0" * 64, (), version) for queue in self.plan.queues}
        jobs = {
            queue: job
            for queue, job in made.items()
            if not begun.intersection(kube_objects.agent_jobs(self._owner, queue))
        }
        facts = kube_facts.ask(self.kubectl, self.options, version, jobs)
        rows = kube_rules.judge(self.plan, self.options, facts, jobs)
        rows += kube_jobsets.judge(self.kubectl, self._owner, self.plan, jobs)
        is_refused = any(row.verdict == "refuse" for row in rows)
        return (
            rows
            if is_refused or kube_claim.is_taken(self._jobs.values())
            else [*rows, self._row_of_image()]
        )

    def _row_of_image(self) -> Row:
        """By a pod of it, once everything else is as it should be."""
        try:
            hand = self._hand_of_helper()
            has_bash = hand.ssh.run(["sh", "-c", "command -v bash"]).code == 0
        except TemporaryError as error:
            return Row(ALL, "helper pod", "refuse", _("not there"), message_of(error).text)
        except InputError as error:
            return Row(ALL, "image", "refuse", self._image, message_of(error).text)
        if not has_bash:
            why = _("it has no bash, by which the agent is started: name another image")
            return Row(ALL, "image", "refuse", self._image, why)
        return Row(ALL, "image", "ok", self._image)

    def start_question(self, start: run_asks.Start) -> None:
        return None

    def start(self, starts: Mapping[str, run_asks.Start]) -> StartedOrWhy:
        """A Job for each. One that is there and has not ended is left alone."""
        started = self._starts.start(starts)
        self._look_at_cluster()
        return started

    @property
    def _image(self) -> str:
        return str(self.project.profile.env.image)

    def _check_options(self) -> None:
        if not self.options.claim or not self.project.profile.env.image:
            raise InputError(
                _(
                    "profiles/{name}.yaml: name what the cluster has for you: extends: "
                    "kubernetes, kubernetes: {{claim: NAME}} (a ReadWriteMany "
                    "PersistentVolumeClaim), and env: {{image: …}}",
                    name=self.project.profile.name,
                )
            )
        self._refuse_another_place()

    # --- its end

    def end_price(self) -> list[str]:
        jobs = sorted(self._jobs)
        return [
            *(_("the Job {job}, with its pods and secrets", job=job) for job in jobs),
            _("the pods' own disks"),
        ]

    def end_keeps(self) -> list[str]:
        tier = self.plan.durable_dir
        if self.is_gone(tier):
            return []
        data = dict.fromkeys(box.data_dir for box in self.plan.boxes)
        on_claim = (folder for folder in data if Path(folder).is_relative_to(tier))
        places = (f"{tier}/boxcar/{self.plan.run}", *on_claim)
        claim = self.options.claim
        return [_("{place} in the claim {claim}", place=place, claim=claim) for place in places]

    def clear_unlaunched(self) -> None:
        if not self._jobs:
            self._helper.remove()

    def end_boxes(self, steps: Steps) -> None:
        """Harmless to repeat. Raises TemporaryError where a Job stays, or the cluster is silent."""
        jobs = kube_jobset.wholes(self._of_run(kube_jobsets.kinds(self.kubectl, "jobs")))
        for job in jobs:
            self.tell(
                _("deleting the {kind} {name}", kind=job["kind"], name=job["metadata"]["name"])
            )
        self._delete(jobs)
        self._delete(self._of_run("pods,secrets"))
        for box in self.plan.boxes:
            if box.name not in steps.now.boxes:
                steps.ended(box.name)

    def _of_run(self, kinds: str, queue: str = "") -> list[dict[str, Any]]:
        return kube_ends.of_run(self.kubectl, self._owner, kinds, queue)

    def _delete(self, objects: kube_ends.Objects) -> None:
        kube_ends.delete(self.kubectl, self._owner, objects)

    # --- inside

    def _report(self, box: str, *, is_reader: bool) -> None:
        """Once more where the exec was cut, or another pod answers for it now: pods come and go."""
        super()._report(box, is_reader=is_reader)
        before, why = self._own_pod(box), self._silent.get(box)
        if not isinstance(why, Unreachable):
            return
        time.sleep(_LOOK_EVERY_S)
        self._look_at_cluster()
        if isinstance(why, LinkCut) or self._own_pod(box) != before:
            super()._report(box, is_reader=is_reader)

    def _look_at_cluster(self) -> None:
        try:
            self._refuse_another_place()
            found = self._of_run("jobs,pods")
        except BoxcarError as error:
            self._problem = error
            return
        self._problem, self._is_looked = None, True
        self._jobs = {one["metadata"]["name"]: one for one in found if one["kind"] == "Job"}
        self._pods = [one for one in found if one["kind"] == "Pod"]
        self._helper.note_state(self._pods)
        if not self._is_told or any(map(self.scheduled, self.plan.queues)):
            self._events, self._is_told = kube_facts.told_of_ends(self.kubectl), True
        there = {pod["metadata"]["name"] for pod in self._pods}
        if self._helper.name in there and kube_claim.is_taken(self._jobs.values()):
            # It was made in the moment when the queue began, and would keep its pod waiting.
            with contextlib.suppress(BoxcarError):
                self._helper.remove()
            self._helper.note_state([])

    def _pods_of(self, queue: str) -> list[dict[str, Any]]:
        """With its agent."""
        return [pod for pod in self._all_pods_of(queue) if kube_jobset.is_agents(pod)]

    def _all_pods_of(self, queue: str) -> list[dict[str, Any]]:
        wanted = kube_objects.plain_name(queue)
        return [
            pod
            for pod in self._pods
            if pod["metadata"].get("labels", {}).get(kube_objects.QUEUE) == wanted
        ]

    def _job_of(self, queue: str) -> dict[str, Any] | None:
        """That starts its agent."""
        names = kube_objects.agent_jobs(self._owner, queue)
        return next((self._jobs[name] for name in names if name in self._jobs), None)

    def _hand(self, box: str) -> Hand:
        """Of the pod that answers for it now."""
        if not self._is_looked:
            self._look_at_cluster()
        if self._problem:
            raise self._problem
        if own := self._own_pod(box):
            return self._hand_of(own, self.plan.box(box).data_dir)
        return self._hand_of_helper()

    def _own_pod(self, box: str) -> str:
        """Of its queue, where one runs."""
        found = (
            str(pod["metadata"]["name"])
            for queue in self.queues_on(box)
            for pod in self._pods_of(queue)
            if kube_pods.is_running(pod) and "deletionTimestamp" not in pod["metadata"]
        )
        return next(found, "")

    def _hand_of_helper(self) -> Hand:
        self._check_options()
        if kube_claim.is_taken(self._jobs.values()):
            raise TemporaryError(
                _(
                    "the claim {claim} is ReadWriteOnce: its files can be read again once the pod "
                    "of the queue runs, or its Job has ended",
                    claim=self.options.claim,
                )
            )
        hand = self._hand_of(self._helper.ready(), self.plan.durable_dir)
        try:
            hand.hello()
        except NoPython:
            self._helper.problem = InputError(
                _(
                    "the image {image} has no Python 3.10 or newer for the agent. Name another one "
                    "in the profile (env: {{image: …}}), or say where its Python is (env: "
                    "{{agent_python: /PATH}})",
                    image=self._image,
                )
            )
            self._helper.remove()
            raise self._helper.problem from None
        return hand

    def _hand_of(self, pod: str, folder: str) -> Hand:
        if pod not in self._hands:
            link = PodLink(self.kubectl, pod, self._owner.claim, Home(self.project.root), self.tell)
            agent = ask_over_ssh.agent_program()
            profile = self.project.profile
            self._hands[pod] = Hand(link, profile, folder, *agent, is_one_machine=False)
        return self._hands[pod]

    def _helper_object(self) -> dict[str, Any]:
        return kube_objects.helper(
            self._owner, tier=self.plan.durable_dir, image=self._image, options=self.options
        )

    def _read_on_helper(self, path: str) -> bytes:
        hand = self._hand_of_helper()
        done = hand.ssh.run(["cat", hand.hello().expand(path)])
        if done.code:
            raise TemporaryError(_("{path}: cannot be read in the helper pod", path=path))
        return done.out

    def _queues_of(self, box: str) -> tuple[str, ...]:
        return tuple(self.plan.queues)

    def _pause(self, box: str) -> None:
        """A cluster is asked again whenever somebody looks."""
