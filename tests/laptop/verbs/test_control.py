from __future__ import annotations

from dataclasses import replace

import pytest
from far_boxes import make_far_run
from run_on_disk import RunOnDisk, agent_started, cell_started, held, make_run

from boxcar.laptop.verbs.control import write_control
from boxcar.laptop.verbs.drain import drain
from boxcar.laptop.verbs.status import status
from boxcar.laptop.verbs.stop import stop
from boxcar.shared.errors import BoxcarError, InputError, NoRoomError, TemporaryError
from boxcar.shared.files import control
from boxcar.shared.files.plan import EACH_BOX


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    return make_run(tmp_path)


def wanted(run: RunOnDisk) -> list[str]:
    return [control.wanted(run.site.tier.control(queue)) for queue in run.project.plan.queues]


def test_drain_asks_every_living_agent_and_says_what_will_happen(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"))
    locks = [run.site.tier.lock(queue) for queue in run.project.plan.queues]
    with held(locks[0]), held(locks[1]):
        assert drain(run.project) == 0
    assert wanted(run) == ["drain", "drain"]
    said = capsys.readouterr().err
    assert "queue_1 on box-a: finishes a, then ends" in said
    assert "invoke watch" in said


def test_all_cells_that_run_side_by_side_are_named(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"), cell_started("b"))
    with held(run.site.tier.lock("queue_1")):
        assert drain(run.project, queues=["queue_1"]) == 0
        assert stop(run.project, queues=["queue_1"]) == 0
    said = capsys.readouterr().err
    assert "queue_1 on box-a: finishes a, b, then ends" in said
    assert "queue_1 on box-a: a, b are asked to save a checkpoint, then end;" in said


KILLED = {"failure": "137-N", "class": "RESUME_SAME", "reason": "it was killed", "wait_s": 60.0}


def test_a_cell_that_waits_for_its_next_try_is_not_said_to_run(run, capsys):
    retried = ("cell.retried", {"cell": "a", "attempt": 1, "seconds": 3.0, **KILLED})
    run.say("queue_1", agent_started(), cell_started("a"), retried)
    with held(run.site.tier.lock("queue_1")):
        assert status(run.project) == 0
        assert "a is retried at" in capsys.readouterr().out
        assert drain(run.project, queues=["queue_1"]) == 0
        assert stop(run.project, queues=["queue_1"]) == 0
    said = capsys.readouterr().err
    assert "queue_1 on box-a: ends; no new cell starts" in said
    assert "checkpoint" not in said and "finishes a" not in said
    status(run.project)
    assert "a is retried at" not in capsys.readouterr().out, "nobody is there to do it"


def test_stop_asks_only_the_named_queue(run, capsys):
    locks = [run.site.tier.lock(queue) for queue in run.project.plan.queues]
    with held(locks[0]), held(locks[1]):
        assert stop(run.project, queues=["queue_2"]) == 0
    assert wanted(run) == ["run", "stop"]
    assert "queue_1" not in capsys.readouterr().err


def test_a_queue_where_nothing_runs_is_not_asked(run, capsys):
    with held(run.site.tier.lock("queue_2")):
        assert stop(run.project) == 0
    assert not run.site.tier.control("queue_1").exists()
    assert wanted(run) == ["run", "stop"]
    assert "queue_1: nothing is running" in capsys.readouterr().err
    assert drain(run.project) == 0
    assert "invoke watch" not in capsys.readouterr().err


def test_a_box_that_is_about_to_stop_itself_is_called_off(run, capsys):
    ended = ("agent.stopped", {"reason": "the queue is done", "by": "done"})
    about = {"what": "box_ends", "text": "it stops itself", "ends_box": "box-a"}
    notice, void = about | {"is_over": False}, about | {"is_over": True}
    run.say("queue_1", agent_started(), ended, ("box.warning", notice))
    assert stop(run.project, boxes=["box-a"]) == 0
    assert wanted(run) == ["stop", "run"]
    said = capsys.readouterr().err
    assert "box-a stays on: its shutdown was called off" in said
    assert "nothing is running" not in said and "invoke watch" not in said
    run.say("queue_1", ("box.warning", void))
    stop(run.project, boxes=["box-a"])
    assert "queue_1: nothing is running" in capsys.readouterr().err


def test_an_agent_that_may_live_is_asked(run):
    lock = run.site.tier.lock("queue_1")
    lock.symlink_to(lock)  # asking it raises OSError, also for root
    stop(run.project, queues=["queue_1"])
    assert wanted(run) == ["stop", "run"]


def test_an_unknown_queue_is_refused_with_the_nearest_name_and_nobody_is_asked(run):
    with (
        held(run.site.tier.lock("queue_1")),
        pytest.raises(InputError, match="did you mean 'queue_1'") as refused,
    ):
        drain(run.project, queues=["queue_1", "queue_11", "nope"])
    assert len(refused.value.problems) == 2
    assert wanted(run) == ["run", "run"]


def test_a_box_that_does_not_answer_keeps_no_other_from_being_asked(tmp_path, monkeypatch):
    run = make_far_run(tmp_path, monkeypatch)
    for queue in ("queue_1", "queue_2"):
        run.agents.say(queue, agent_started())
    run.world.cut.add("box-a")
    with (
        held(run.agents.site.tier.lock("queue_2")),
        pytest.raises(TemporaryError, match="queue_1 could not be asked to stop"),
    ):
        stop(run.project)
    assert wanted(run.agents) == ["run", "stop"]


def test_a_full_tier_and_a_box_that_is_cut_off_keep_no_third_from_being_asked(
    tmp_path, monkeypatch
):
    run = make_far_run(tmp_path, monkeypatch)
    full = {"queue_1": NoRoomError("control/queue_1.json: No space left on device")}

    def write(site, box, queue, want, real=write_control):
        if queue in full:
            raise full[queue]
        real(site, box, queue, want)

    monkeypatch.setattr("boxcar.laptop.verbs.control.write_control", write)
    for queue in ("queue_1", "queue_2"):
        run.agents.say(queue, agent_started())
    locks = [run.agents.site.tier.lock(queue) for queue in ("queue_1", "queue_2")]
    with held(locks[0]), held(locks[1]):
        with pytest.raises(NoRoomError, match="queue_1 could not be asked to drain"):
            drain(run.project)
        assert wanted(run.agents) == ["run", "drain"]
        run.world.cut.add("box-b")
        with pytest.raises(BoxcarError) as refused:
            drain(run.project)
    assert [text.partition(" (")[0] for text in refused.value.problems] == [
        "queue_1 could not be asked to drain",
        "queue_2 could not be asked to drain",
    ]
    assert "No space left" in str(refused.value)


def test_the_queue_of_a_box_that_has_left_the_plan_is_asked_through_the_shared_tier(run):
    run.say("queue_2", agent_started(), cell_started("c"))
    plan = run.project.plan
    cells = tuple(cell for cell in plan.cells if cell.queue == "queue_1")
    left = replace(plan, queues={"queue_1": "box-a"}, boxes=plan.boxes[:1], cells=cells)
    with held(run.site.tier.lock("queue_2")):
        stop(replace(run.project, plan=left))
        assert wanted(run) == ["run", "stop"]
        with pytest.raises(InputError, match="box-b, which is no longer in the job"):
            stop(replace(run.project, plan=replace(left, durable_scope=EACH_BOX)))


def test_only_the_named_boxes_are_asked(run):
    locks = [run.site.tier.lock(queue) for queue in run.project.plan.queues]
    with held(locks[0]), held(locks[1]):
        stop(run.project, boxes=["box-b"])
    assert wanted(run) == ["run", "stop"]
