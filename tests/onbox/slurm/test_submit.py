from __future__ import annotations

from dataclasses import replace

import pytest
from pretended import RELEASE, Pretended

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.slurm import submitted
from boxcar.shared.slurm.submitted import Submit
from boxcar.shared.wire import cluster_asks
from onbox.slurm import cancel, squeue, submit

BOTH = cluster_asks.SlurmSubmit(RELEASE, "run_slurm.sh", {"0": "queue_1", "2": "queue_3"}, ())
LONG_AGO = "2026-01-01T00:00:00.000Z"


def left_by_another(slurm: Pretended, **own: object) -> Submit:
    """An intent of a process that is no more, as a killed submit leaves it."""
    intent = Submit(
        token="f" * 16,
        release=RELEASE,
        script="run_slurm.sh",
        queues={"0": "queue_1"},
        at=timestamp.utc_now(),
        host="login2",
        pid=1,
        started="x",
    )
    intent = replace(intent, **own)  # type: ignore[arg-type]
    atomic.make_folder(slurm.tier.slurm)
    atomic.write_whole(slurm.tier.slurm_intent, codec.to_document(intent))
    return intent


def test_a_submit_names_release_queues_and_where_they_begin(slurm):
    asked = replace(BOTH, begins=(cluster_asks.Begin("queue_3", 4, "cell-5"),))
    done = submit.answer(asked, slurm.run)
    assert done == cluster_asks.SlurmSubmitted("7", ("queue_1", "queue_3"), ())
    [call] = slurm.calls("sbatch")
    release = slurm.tier.release(RELEASE)
    assert "--array=0,2" in call and f"release={RELEASE}" in call
    assert call.endswith(f"{release}/run_slurm.sh {release} queue_3 4 cell-5")
    assert {task.queue for task in squeue.look(slurm.tier).tasks} == {"queue_1", "queue_3"}
    assert not slurm.tier.slurm_intent.exists()


def test_what_waits_or_runs_is_left_alone_and_only_the_rest_is_submitted(slurm):
    submit.answer(replace(BOTH, queues={"0": "queue_1"}), slurm.run)
    again = submit.answer(BOTH, slurm.run)
    assert again == cluster_asks.SlurmSubmitted("8", ("queue_3",), ("queue_1",))
    assert submit.answer(BOTH, slurm.run) == cluster_asks.SlurmSubmitted(
        None, (), ("queue_1", "queue_3")
    )
    assert len(slurm.calls("sbatch")) == 2


def test_a_refusal_is_said_in_slurms_words_and_leaves_nothing_in_the_way(slurm):
    slurm.mood("sbatch", "refuses")
    with pytest.raises(InputError, match="invalid partition specified: nosuch"):
        submit.answer(BOTH, slurm.run)
    slurm.mood("sbatch", "")
    assert submit.answer(BOTH, slurm.run).job == "7"


def test_nothing_is_submitted_while_slurm_is_silent(slurm):
    slurm.mood("squeue", "silent")
    with pytest.raises(TemporaryError, match="Slurm does not answer"):
        submit.answer(BOTH, slurm.run)
    assert slurm.calls("sbatch") == [] and not slurm.tier.slurm_intent.exists()


def test_an_answer_that_was_lost_is_found_by_its_token(slurm):
    slurm.mood("sbatch", "dies")
    assert submit.answer(BOTH, slurm.run).job == "7"
    assert len(slurm.calls("sbatch")) == 1


def test_an_unsure_submit_is_not_repeated_until_slurm_must_have_shown_it(slurm, monkeypatch):
    slurm.mood("sbatch", "loses")
    with pytest.raises(TemporaryError, match="did not say whether Slurm has taken the job"):
        submit.answer(BOTH, slurm.run)
    slurm.mood("sbatch", "")
    monkeypatch.setattr("onbox.machine.process.start_time", lambda pid: None)  # it has ended
    with pytest.raises(TemporaryError, match="nothing is submitted twice"):
        submit.answer(BOTH, slurm.run)
    assert len(slurm.calls("sbatch")) == 1
    intent = submitted.read_submit(slurm.tier.slurm_intent)
    assert intent and intent.is_sent
    aged = codec.to_document(replace(intent, at=LONG_AGO))
    atomic.write_whole(slurm.tier.slurm_intent, aged)
    assert submit.answer(BOTH, slurm.run).job == "7"


def test_a_killed_submit_that_slurm_has_taken_is_noted_and_left_alone(slurm):
    left = left_by_another(slurm, is_sent=True)
    slurm.has("7|0|7_0|PENDING|N/A||Priority", token=left.token)
    done = submit.answer(BOTH, slurm.run)
    assert done.left_alone == ("queue_1",) and done.queues == ("queue_3",)
    noted = submitted.read_submit(slurm.tier.slurm_submit(left.token))
    assert noted and noted.job == "7"


@pytest.mark.parametrize("at", [None, LONG_AGO])
def test_of_two_who_submit_at_once_one_does(slurm, at):
    left_by_another(slurm, **({"at": at} if at else {}))
    if at is None:
        with pytest.raises(TemporaryError, match="somebody else submits digits"):
            submit.answer(BOTH, slurm.run)
        assert slurm.calls("sbatch") == []
    else:  # it was killed before it could call sbatch
        assert submit.answer(BOTH, slurm.run).job == "7"


def test_killed_before_or_after_sbatch_the_same_launch_submits_each_queue_once(slurm, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(submit, "_note", die)
        patch.setattr(submit, "_take_back", lambda *_: None)
        with pytest.raises(Killed):
            submit.answer(BOTH, slurm.run)
    assert slurm.tier.slurm_intent.exists()
    monkeypatch.setattr("onbox.machine.process.start_time", lambda pid: None)
    assert submit.answer(BOTH, slurm.run).left_alone == ("queue_1", "queue_3")
    assert len(slurm.calls("sbatch")) == 1


def test_a_release_that_is_not_there_submits_nothing(slurm):
    with pytest.raises(InputError, match="send the release"):
        submit.answer(replace(BOTH, digest="b" * 64), slurm.run)
    assert slurm.calls("sbatch") == []


def test_only_tasks_of_this_run_that_have_not_ended_are_cancelled(slurm):
    slurm.has("7|0|7_0|RUNNING|N/A|n1|None", "7|1|7_1|PENDING|N/A||Priority", "6|0|6_0|FAILED|||")
    with (slurm.folder / "jobs").open("a") as file:
        file.write("5|0|5_0|RUNNING|N/A|n1|None|mine\n")
    assert cancel.answer(cluster_asks.SlurmCancel(), slurm.run).tasks == ("7_0", "7_1")
    assert slurm.calls("scancel") == ["scancel 7_0 7_1"]


def test_of_queues_that_wait_their_own_tasks_are_cancelled_and_no_others(slurm):
    submitted = submit.answer(BOTH, slurm.run)
    [first, second] = submitted.queues
    slurm.later()
    assert cancel.answer(cluster_asks.SlurmCancel((second,)), slurm.run).tasks == ("7_2",)
    assert slurm.calls("scancel") == ["scancel 7_2"]
    jobs = slurm.folder / "jobs"
    jobs.write_text(jobs.read_text().replace("7_2|PENDING", "7_2|RUNNING"))
    assert cancel.answer(cluster_asks.SlurmCancel((second,)), slurm.run).tasks == ()
    assert cancel.answer(cluster_asks.SlurmCancel((first, second)), slurm.run).tasks == ("7_0",)
    assert slurm.calls("scancel")[1:] == ["scancel 7_0"]


def test_nothing_is_cancelled_while_slurm_is_silent(slurm):
    slurm.mood("squeue", "silent")
    with pytest.raises(TemporaryError):
        cancel.answer(cluster_asks.SlurmCancel(), slurm.run)
    assert slurm.calls("scancel") == []


def test_cell_by_cell_there_is_a_task_for_each_line_and_one_runs_at_a_time(slurm):
    atomic.make_folder(slurm.tier.queues)
    lines = b"configs/a.json one\n# configs/x.json one\nconfigs/b.json one\nconfigs/c.json one\n"
    slurm.tier.queue("queue_2").write_bytes(lines)
    asked = replace(BOTH, queues={"1": "queue_2"}, is_per_cell=True)
    done = submit.answer(asked, slurm.run)
    assert done.queues == ("queue_2",)
    [call] = slurm.calls("sbatch")
    assert "--array=0,1,2%1" in call
    again = submit.answer(asked, slurm.run)
    assert again.left_alone == ("queue_2",) and len(slurm.calls("sbatch")) == 1


@pytest.mark.parametrize("is_open", [False, True])
def test_where_only_artifacts_are_left_to_be_loaded_one_core_and_no_gpu_will_do(slurm, *, is_open):
    atomic.make_folder(slurm.tier.queues)
    slurm.tier.queue("queue_2").write_bytes(b"configs/a.json one\nconfigs/b.json one\n")
    made = [slurm.tier.manifest("a"), slurm.tier.receipt("a")]
    for path in [*made, *([] if is_open else [slurm.tier.manifest("b")])]:
        atomic.make_folder(path.parent)
        path.touch()
    submit.answer(replace(BOTH, queues={"1": "queue_2"}), slurm.run)
    [call] = slurm.calls("sbatch")
    assert ("--cpus-per-task=1 --gres=none" in call) is not is_open
