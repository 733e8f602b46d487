from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_on_disk import (
    RELEASE,
    RunOnDisk,
    agent_started,
    cell_started,
    from_now,
    make_run,
    queue_done,
)

from boxcar.laptop.places.slurm_site import SlurmSite
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import RunView
from boxcar.laptop.teardown.still_running import find_alive
from boxcar.laptop.verbs import control
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.status import exit_code
from boxcar.shared import timestamp
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.files.control import DRAIN, STOP
from boxcar.shared.slurm.submitted import Task
from boxcar.shared.wire import cluster_asks
from onbox.answers import report


class Cluster(SlurmSite):
    """Its login node reads the run where it lies; what Slurm says is what a test gave it."""

    def __init__(self, run: RunOnDisk) -> None:
        super().__init__(run.project, lambda text: None)
        self.asked: list[str] = []
        self.tasks_there: tuple[Task, ...] = ()
        self.problem: str | None = None
        self.is_silent = False
        self.called_off: tuple[str, ...] = ()
        self.has_begun = False  # since Slurm was looked at

    def ask(self, box: str, question: Any, **_: Any) -> Any:
        self.asked.append(question.NAME)
        if self.is_silent:
            raise TemporaryError("hpc: Connection timed out")
        if isinstance(question, cluster_asks.SlurmLook):
            return cluster_asks.SlurmLooked(timestamp.utc_now(), self.tasks_there, self.problem)
        if isinstance(question, cluster_asks.SlurmCancel):
            self.called_off = question.waiting_of
            return cluster_asks.SlurmCancelled(() if self.has_begun else ("7_0",))
        return report.answer(question, self._run_on(box))

    def has(self, state: str, reason: str = "None", queue: str = "queue_1") -> None:
        self.tasks_there = (Task("7_0", queue, state, reason, None, "n1", RELEASE),)


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_run(tmp_path)


@pytest.fixture
def cluster(run: RunOnDisk) -> Cluster:
    return Cluster(run)


def view_of(run: RunOnDisk, cluster: Cluster) -> RunView:
    cluster.refresh()
    return look_at_run(cluster, timestamp.utc_now())


def word(run: RunOnDisk, cluster: Cluster) -> str:
    return view_of(run, cluster).queue("queue_1").condition.word


def test_a_look_at_all_queues_is_two_short_calls_of_the_login_node(
    run: RunOnDisk, cluster: Cluster
) -> None:
    run.say("queue_1", agent_started(), cell_started("a"))
    run.say("queue_2", agent_started(), queue_done())
    cluster.has("RUNNING")
    view = view_of(run, cluster)
    assert cluster.asked == ["report", "slurm_look"]
    assert view.queue("queue_1").is_alive and view.queue("queue_2").condition.word == "done"


def test_an_agent_that_ends_between_the_two_calls_is_done_and_not_dead(
    run: RunOnDisk, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.say("queue_1", agent_started())
    cluster.has("RUNNING")
    assert view_of(run, cluster).queue("queue_1").is_alive
    ask = cluster.ask

    def ends_meanwhile(box: str, question: Any, **more: Any) -> Any:
        if isinstance(question, cluster_asks.SlurmLook):
            run.say("queue_1", queue_done())
            cluster.has("COMPLETED")
        return ask(box, question, **more)

    monkeypatch.setattr(cluster, "ask", ends_meanwhile)
    assert word(run, cluster) == "done"


@pytest.mark.parametrize(
    ("reason", "expected", "code"),
    [
        ("Priority", "pending", 0),
        ("BeginTime", "pending", 0),
        ("PartitionTimeLimit", "held", 1),
        ("job requeued in held state", "held", 1),
        ("job_requeued_in_held_state", "held", 1),
    ],
)
def test_a_queue_that_waits_is_never_to_be_launched(
    run: RunOnDisk, cluster: Cluster, reason: str, expected: str, code: int
) -> None:
    """Also where its agent was killed: Slurm is about to start it again."""
    run.say("queue_1", agent_started(), cell_started("a"))
    cluster.has("PENDING", reason)
    view = view_of(run, cluster)
    queue = view.queue("queue_1")
    assert queue.condition.word == expected and reason in queue.condition.sentence
    assert may_run(queue) and exit_code(view) == code
    step = next_step(view, cluster)
    assert step.command and step.command.verb in ("watch", "status")
    assert "agents are running" not in str(step.because)


def test_stop_takes_back_a_job_that_waits_and_asks_no_agent(
    run: RunOnDisk, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run.say("queue_1", agent_started(), cell_started("a"))
    cluster.has("PENDING", "BeginTime")
    assert control.request(cluster, STOP) == []
    said = capsys.readouterr().err
    assert cluster.called_off == ("queue_1",) and "cancelled before it started: 7_0" in said
    assert "queue_1: nothing is running" not in said and "queue_2: nothing is running" in said
    assert not run.site.tier.control("queue_1").exists()


def test_stop_says_of_a_job_that_has_begun_meanwhile_that_nobody_was_asked(
    run: RunOnDisk, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.has("PENDING", "Priority")
    cluster.has_begun = True
    assert control.request(cluster, STOP) == []
    said = capsys.readouterr().err
    assert "queue_1: job 7_0 is no longer pending" in said and "taken back" not in said


def test_drain_takes_no_job_back(run: RunOnDisk, cluster: Cluster) -> None:
    cluster.has("PENDING", "Priority")
    assert control.request(cluster, DRAIN) == []
    assert cluster.called_off == ()


def test_without_a_job_an_agent_without_a_last_word_is_dead(
    run: RunOnDisk, cluster: Cluster
) -> None:
    run.say("queue_1", agent_started(), cell_started("a"))
    assert word(run, cluster) == "agent dead"
    cluster.has("CANCELLED")
    assert word(run, cluster) == "agent dead"


def test_an_agent_that_has_just_shown_itself_runs_whatever_squeue_said_before(
    run: RunOnDisk, cluster: Cluster
) -> None:
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(5), cell="a")
    cluster.has("PENDING", "Priority")
    assert word(run, cluster) == "running"


def test_with_a_silent_slurm_nobody_is_called_dead_and_nothing_is_torn_down(
    run: RunOnDisk, cluster: Cluster
) -> None:
    run.say("queue_1", agent_started(), cell_started("a"))
    cluster.problem = "Unable to contact slurm controller"
    found = view_of(run, cluster).queue("queue_1").condition
    assert found.word == "unreachable" and "Unable to contact" in found.sentence
    assert "cannot tell whether the agents run" in str(cluster.end_problems())
    assert find_alive(cluster, ["a"])


def test_a_login_node_that_does_not_answer_is_said_once(run: RunOnDisk, cluster: Cluster) -> None:
    run.say("queue_1", agent_started(), cell_started("a"))
    cluster.has("RUNNING")
    view_of(run, cluster)
    cluster.is_silent = True
    view = view_of(run, cluster)
    assert {queue.condition.word for queue in view.queues} == {"unreachable"}
    assert len([text for text in view.problems if "Connection timed out" in text]) == 1


def test_nothing_of_a_job_outlives_it_and_a_waiting_job_holds_up_no_teardown(
    run: RunOnDisk, cluster: Cluster
) -> None:
    run.say("queue_1", agent_started(), queue_done())
    cluster.has("PENDING", "JobHeldUser")
    cluster.refresh()
    assert find_alive(cluster, ["a"]) == ()
    assert "the waiting job 7_0" in cluster.end_price()
    cluster.has("RUNNING")
    cluster.refresh()
    assert [row.what for row in find_alive(cluster, ["a"])] == ["the agent of queue_1 is running"]


def test_a_queue_of_a_cluster_is_no_machine_that_can_be_gone(cluster: Cluster) -> None:
    with pytest.raises(InputError, match="down cancels its job"):
        cluster.give_up_boxes(["box-a"])


def test_the_login_node_is_that_of_the_job_before_the_profile_s(run: RunOnDisk) -> None:
    slurm = run.project.profile.slurm.model_copy(update={"login": "hpc"})
    profile = run.project.profile.model_copy(update={"slurm": slurm})
    assert SlurmSite(replace(run.project, profile=profile), print).login == "hpc"
    assert SlurmSite(run.project, print).login is None
