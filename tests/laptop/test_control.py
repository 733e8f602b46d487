from __future__ import annotations

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_started, held, make_run

from boxcar.formats import control
from boxcar.formats.errors import InputError
from boxcar.laptop.drain import drain
from boxcar.laptop.stop import stop


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    return make_run(tmp_path)


def wanted(run: RunOnDisk) -> list[str]:
    return [control.wanted(run.project.durable.control(queue)) for queue in run.project.plan.queues]


def test_drain_asks_every_living_agent_and_says_what_will_happen(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"))
    locks = [run.project.durable.lock(queue) for queue in run.project.plan.queues]
    with held(locks[0]), held(locks[1]):
        assert drain(run.project) == 0
    assert wanted(run) == ["drain", "drain"]
    said = capsys.readouterr().err
    assert "queue_1 on box-a: finishes a, then ends" in said
    assert "invoke watch" in said


def test_stop_asks_only_the_named_queue(run, capsys):
    locks = [run.project.durable.lock(queue) for queue in run.project.plan.queues]
    with held(locks[0]), held(locks[1]):
        assert stop(run.project, queues=["queue_2"]) == 0
    assert wanted(run) == ["run", "stop"]
    assert "queue_1" not in capsys.readouterr().err


def test_a_queue_where_nothing_runs_is_not_asked(run, capsys):
    with held(run.project.durable.lock("queue_2")):
        assert stop(run.project) == 0
    assert not run.project.durable.control("queue_1").exists()
    assert wanted(run) == ["run", "stop"]
    assert "queue_1: nothing runs" in capsys.readouterr().err
    assert drain(run.project) == 0
    assert "invoke watch" not in capsys.readouterr().err


def test_an_agent_that_may_live_is_asked(run):
    lock = run.project.durable.lock("queue_1")
    lock.symlink_to(lock)  # asking it raises OSError, also for root
    stop(run.project, queues=["queue_1"])
    assert wanted(run) == ["stop", "run"]


def test_an_unknown_queue_is_refused_with_the_nearest_name_and_nobody_is_asked(run):
    with (
        held(run.project.durable.lock("queue_1")),
        pytest.raises(InputError, match="did you mean queue_1") as refused,
    ):
        drain(run.project, queues=["queue_1", "queue_11", "nope"])
    assert len(refused.value.problems) == 2
    assert wanted(run) == ["run", "run"]
