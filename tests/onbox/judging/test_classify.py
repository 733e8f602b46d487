from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from plans import make_plan

from boxcar.shared.files.attempt import Done
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.judging import judgement
from onbox.judging.classify import (
    classify,
    last_error,
    of_ended_job,
    of_ended_pod,
    without_record,
)
from onbox.judging.judgement import Looked
from onbox.judging.verdict import Action
from onbox.machine.place import Place

NOW = "2026-11-21T02:00:00.000Z"


def done(rc: int, *, oom_kills: int = 0, told: bool = False) -> Done:
    return Done("c", 1, rc, NOW, NOW, 12.0, oom_kills, told, "one")


# What torchrun prints when a worker ended with another code than 0; it returns 1 itself.
TORCHRUN = """
traceback : Signal 9 (SIGKILL) received by PID 4711
  rank      : 0 (local_rank: 0)
  exitcode  : {rc} (pid: 4711)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""


def test_only_zero_with_every_artifact_is_a_success():
    assert classify(done(0), "", []).action is Action.SUCCEED
    verdict = classify(done(0), "all done!", ["best.pth"])
    assert (verdict.action, verdict.failure) == (Action.FAIL, "NO-ART")
    assert "best.pth" in verdict.reason


def test_an_artifact_that_lies_beside_the_code_is_told_by_its_path():
    strays = {"best.pt": "runs/best.pt", "last.pt": "last.pt"}
    verdict = classify(done(0), "", ["best.pt"], strays=strays)
    assert (verdict.action, verdict.failure) == (Action.FAIL, "NO-ART")
    assert verdict.reason == (
        "it exited with 0, but did not write best.pt. The script wrote it to "
        "./runs/best.pt, beside its code: set workdir: out in job.yaml"
    )
    in_out = classify(done(0), "", ["best.pt"], strays=strays, workdir="out")
    assert in_out.reason.endswith("./runs/best.pt, beside its code: write it into $BOXCAR_OUT")
    only_resume = classify(done(0), "", ["best.pt"], strays={"last.pt": "last.pt"})
    assert "wrote it to ./last.pt, beside" in only_resume.reason


def test_what_cannot_be_published_is_no_success_and_kept_unless_something_is_missing():
    verdict = classify(done(0), "", [], "best.pth is a link to nothing")
    assert (verdict.action, verdict.failure, verdict.is_kept) == (Action.FAIL, "UNFIT", True)
    assert verdict.reason == "best.pth is a link to nothing"
    assert not classify(done(0), "", ["m.json"], "best.pth is a link to nothing").is_kept


@pytest.mark.parametrize("rc", [0, 1, -15, 85])
def test_another_number_of_ranks_than_was_asked_for_is_never_tried_again(rc):
    """However the script takes its end: it may save and say 85, or 0."""
    record = dataclasses.replace(done(rc, told=rc == 85), ranks_asked=2, ranks_formed=1)
    verdict = classify(record, "", [])
    assert (verdict.action, verdict.failure, verdict.is_final) == (Action.FAIL, "RANKS", True)
    assert "asked for 2 ranks and formed 1" in verdict.reason


@pytest.mark.parametrize("rc", [1, -9, 137, 85, 42, 3, 255])
def test_no_word_in_a_log_makes_a_success_of_another_code(rc):
    verdict = classify(done(rc), "training complete, all artifacts saved", [])
    assert verdict.action is not Action.SUCCEED


@pytest.mark.parametrize(
    ("rc", "tail", "action", "failure"),
    [
        pytest.param(1, TORCHRUN.format(rc=-9), Action.RETRY, "137-N", id="rank killed"),
        pytest.param(-9, "", Action.RETRY, "137-N", id="launcher killed"),
        pytest.param(1, TORCHRUN.format(rc=-11), Action.RETRY, "SEGV", id="rank segfault"),
        pytest.param(1, TORCHRUN.format(rc=85), Action.FAIL, "UNASKED", id="rank said 85"),
        pytest.param(1, TORCHRUN.format(rc=42), Action.FAIL, "EXIT42", id="rank said 42"),
        pytest.param(43, "", Action.STOP_QUEUE, "EXIT43", id="python said 43"),
        pytest.param(75, "", Action.RETRY, "EXIT75", id="temporary"),
        pytest.param(3, "", Action.STOP_QUEUE, "EXIT3", id="disk gate of the script"),
        pytest.param(
            127, "python9: command not found", Action.STOP_QUEUE, "NOEXE", id="no program"
        ),
        pytest.param(
            1, "OSError: [Errno 28] No space left on device", Action.RETRY, "DISK", id="full"
        ),
        pytest.param(
            1, "RuntimeError: CUDA out of memory. Tried to allocate", Action.FAIL, "M2", id="vram"
        ),
        pytest.param(
            1, "ModuleNotFoundError: No module named 'timm'", Action.FAIL, "MOD", id="module"
        ),
        pytest.param(
            1,
            "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off",
            Action.STOP_QUEUE,
            "U22",
            id="gpu",
        ),
        pytest.param(1, "ValueError: the halves differ", Action.FAIL, "EXIT1", id="its own fault"),
    ],
)
def test_each_end_has_its_class(rc, tail, action, failure):
    verdict = classify(done(rc), tail, [])
    assert (verdict.action, verdict.failure) == (action, failure)
    assert verdict.reason


@pytest.mark.parametrize("rc", [75, 42])
def test_what_the_report_of_a_hang_says_is_the_reason(rc):
    said = "boxcar: one-rank-diverged: rank 1 is at train.py:13; rank 1 is on n2"
    slow = "boxcar: slow: no step for 18 s"
    verdict = classify(done(1), f"{said}\n{slow}\n{TORCHRUN.format(rc=rc)}", [])
    assert verdict.reason.endswith(said.removeprefix("boxcar"))


def test_a_kill_counts_as_out_of_memory_only_when_the_counter_rose():
    killed = TORCHRUN.format(rc=-9)
    assert classify(done(1, oom_kills=1), killed, []).failure == "U9"
    assert classify(done(1, oom_kills=0), killed, []).failure == "137-N"


def test_a_dead_gpu_outranks_what_it_causes():
    tail = "CUDA out of memory. Tried to allocate\nXid 79: GPU has fallen off the bus"
    assert classify(done(1), tail, []).failure == "U22"


def test_a_cell_that_was_told_to_stop_is_preempted_not_failed():
    assert classify(done(1, told=True), "SignalException", []).action is Action.PREEMPTED
    assert classify(done(-15, told=True), "", []).action is Action.PREEMPTED


@pytest.mark.parametrize(("rc", "tail"), [(85, ""), (1, TORCHRUN.format(rc=85))])
def test_85_that_nobody_asked_for_is_resumed_where_it_saved_a_checkpoint_and_else_fails(rc, tail):
    saved = classify(done(rc), tail, [], has_saved=True)
    assert (saved.action, saved.failure) == (Action.PREEMPTED, "EXIT85")
    assert saved.reason == "it exited with 85, and saved a checkpoint"
    assert 0 < len(saved.waits_s) < 30
    without = classify(done(rc), tail, [])
    assert (without.action, without.failure, without.waits_s) == (Action.FAIL, "UNASKED", ())
    assert "unasked, and saved no checkpoint" in without.reason


@pytest.mark.parametrize("rc", [0, 1, -15, 85, 143])
@pytest.mark.parametrize(("has_saved", "words"), [(True, "a checkpoint"), (False, "no checkpoint")])
def test_that_a_checkpoint_was_saved_at_a_stop_is_said_only_where_one_is_there(
    rc, has_saved, words
):
    verdict = classify(done(rc, told=True), "", [], has_saved=has_saved)
    assert (verdict.action, verdict.failure) == (Action.PREEMPTED, "EXIT85")
    assert verdict.reason == f"it was asked to stop, and saved {words}"


def test_a_launchers_0_with_ranks_alive_is_no_success_and_tried_again():
    record = dataclasses.replace(done(0), ranks_alive=2)
    verdict = classify(record, "", [])
    assert (verdict.action, verdict.failure) == (Action.RETRY, "RANKS-ALIVE")
    assert "exited with 0 while 2 ranks still ran" in verdict.reason
    assert 0 < len(verdict.waits_s) < 10


def test_only_exit_42_is_final():
    assert classify(done(42), "", []).is_final
    assert not classify(done(1), "ValueError: x", []).is_final


def test_retries_come_to_an_end():
    for rc, tail in ((-9, ""), (75, ""), (1, "EADDRINUSE")):
        assert 0 < len(classify(done(rc), tail, []).waits_s) < 30
    assert 0 < len(without_record(None, "").waits_s) < 10


def test_a_wrapper_that_was_killed_is_tried_again_and_one_that_failed_stops_the_queue():
    assert without_record(None, "").action is Action.RETRY
    assert without_record(-9, "").action is Action.RETRY
    failed = without_record(127, "run_one.sh: line 3: conda: command not found\n")
    assert failed.action is Action.STOP_QUEUE
    assert "conda: command not found" in failed.reason


def test_the_last_error_is_the_scripts_not_torchruns():
    tail = "Traceback\nKeyError: 'latent'\n" + TORCHRUN.format(rc=1)
    assert last_error(tail) == "KeyError: 'latent'"
    assert last_error("[rank0]: ValueError: bad\nmore") == "ValueError: bad"
    assert last_error("just words\n") == "just words"
    assert last_error("") == ""


LACKING = "/data: 0 bytes are free, 67108864 are needed"
NO_SPACE = "OSError: [Errno 28] No space left on device"


def test_what_ended_while_its_disk_was_full_waits_for_room_whatever_record_is_missing():
    ends = [
        classify(done(1), NO_SPACE, [], lacking_room=LACKING),
        classify(done(-9), "", [], lacking_room=LACKING),
        classify(done(1), "ValueError: x", [], lacking_room=LACKING),
        classify(done(3), "", [], lacking_room=LACKING),
        classify(done(85), "", [], lacking_room=LACKING),
        classify(done(0), "", ["best.pth"], lacking_room=LACKING),
        without_record(None, "", lacking_room=LACKING),
        without_record(1, "run_one.sh: line 3: echo: write error", lacking_room=LACKING),
    ]
    assert {(end.action, end.failure) for end in ends} == {(Action.AWAIT_ROOM, "DISK")}
    assert all(LACKING in end.reason for end in ends)


def test_a_success_and_a_scripts_own_word_count_on_a_full_disk_too():
    assert classify(done(0), "", [], lacking_room=LACKING).action is Action.SUCCEED
    assert classify(done(42), "", [], lacking_room=LACKING).failure == "EXIT42"
    left = classify(done(85), "", [], lacking_room=LACKING, has_saved=True)
    assert left.action is Action.PREEMPTED
    gpu = classify(done(1), "Xid 79: GPU has fallen off the bus", [], lacking_room=LACKING)
    assert gpu.failure == "U22"


def test_a_disk_that_has_room_again_is_tried_a_few_times():
    for end in (classify(done(1), NO_SPACE, []), without_record(None, NO_SPACE)):
        assert (end.action, end.failure) == (Action.RETRY, "DISK")
        assert 0 < len(end.waits_s) < 10


def test_only_a_launcher_that_reports_on_workers_is_believed_when_it_names_their_codes():
    line = "exitcode : 43 (pid: 1)\nValueError: x"
    assert classify(done(1), line, [], launcher="python").failure == "EXIT1"
    assert classify(done(1), line, [], launcher="torchrun").failure == "EXIT43"
    assert classify(done(1), "the exitcode : 43 of it\nValueError: x", []).failure == "EXIT1"


def test_what_room_would_not_help_does_not_wait_for_it():
    """A model that is too large stays so on an empty disk."""
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert classify(done(1), text, [], lacking_room=LACKING).action is Action.FAIL


@pytest.mark.parametrize(
    ("state", "failure"),
    [
        ("NODE_FAIL", "NODEFAIL"),
        ("PREEMPTED", "SPOT"),
        ("TIMEOUT", "TIME_LIMIT"),
        ("REQUEUED", "GONE"),
    ],
)
def test_a_job_that_the_scheduler_ended_costs_its_cell_nothing_and_is_named(state, failure):
    verdict = of_ended_job(without_record(None, ""), state)
    assert (verdict.action, verdict.failure) == (Action.RETRY, failure)
    assert verdict.reason == f"Slurm ended its job: {state}"
    assert verdict.waits_s[0] < 10


def test_a_job_whose_memory_was_too_small_would_end_alike_again():
    verdict = of_ended_job(without_record(None, ""), "OUT_OF_MEMORY")
    assert verdict.action is Action.FAIL and "OUT_OF_MEMORY" in verdict.reason


@pytest.mark.parametrize(
    ("reason", "action", "failure"),
    [
        ("OOMKilled", Action.FAIL, "U9"),
        ("Evicted", Action.RETRY, "EVICTED"),
        ("ContainerStatusUnknown", Action.RETRY, "GONE"),
    ],
)
def test_a_pod_whose_memory_was_too_small_would_end_alike_again(reason, action, failure):
    verdict = of_ended_pod(without_record(None, ""), reason)
    assert (verdict.action, verdict.failure) == (action, failure)
    assert verdict.reason.startswith(f"Kubernetes ended its pod: {reason}")


def test_an_attempt_that_left_its_record_is_judged_by_that():
    own = classify(done(1), NO_SPACE, [])
    assert of_ended_job(own, "NODE_FAIL") is own


CHANGED = Looked(("train.py",))
AT = "2026-11-21T03:27:43.973Z"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    scratch, durable = ScratchPaths(tmp_path / "box", "r"), DurablePaths(tmp_path / "tier", "r")
    scratch.root.mkdir(parents=True)
    found: Any = SimpleNamespace(scratch=scratch, durable=durable, plan=make_plan())
    return cast(Place, found)


def test_an_attempt_without_a_record_is_never_failed_for_changed_code(place):
    verdict = judgement.of_attempt(place, "a", None, None, CHANGED)
    assert (verdict.action, verdict.failure) == (Action.RETRY, "GONE")


def test_one_that_ended_is(place):
    done = Done("a", 1, 0, AT, AT, 1.0, 0, False, "r")
    assert judgement.of_attempt(place, "a", done, 0, CHANGED).failure == "CODE"
