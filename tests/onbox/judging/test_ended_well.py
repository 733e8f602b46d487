from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared import state, timestamp
from boxcar.shared.files import attempt, codec, manifest
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.plan import Artifact, Metric
from onbox.judging.judgement import has_saved
from onbox.judging.proof_of_end import ABORTED_AT_EXIT, ENDED_BEFORE, Left, doubts, success_of

# The config's words: `epochs` it trains, `says` of each of them, with {epoch}; `ends` by this
# signal in the first start, `at` that epoch, or after the last; `writes` a file each epoch, with
# {epoch}; `late` and `empty`: what it writes after the last; `reports` to progress.jsonl; `prints`
# at its end.
SCRIPT = """\
import json, os, signal, sys, time
from pathlib import Path

config, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
starts = out / "starts"
is_first = not starts.exists()
with starts.open("a") as file:
    file.write(f"{os.getpid()}\\n")


def die():
    if is_first and "ends" in config:
        os.kill(os.getpid(), config["ends"])


for epoch in range(1, config["epochs"] + 1):
    if config.get("says"):
        print(config["says"].format(epoch=epoch))
    if config.get("reports"):
        with (out / "progress.jsonl").open("a") as file:
            file.write(json.dumps({"epoch": epoch}) + "\\n")
    if epoch == config.get("at"):
        die()
    if "writes" in config:
        name = config["writes"].format(epoch=epoch)
        (out / name).write_text(json.dumps({"loss": 1 / epoch}))
if "prints" in config:
    print(config["prints"])
if "late" in config:
    time.sleep(0.05)  # of another tick of the clock than what it printed
    (out / config["late"]).write_text(json.dumps({"loss": 0}))
if "empty" in config:
    (out / config["empty"]).touch()
if "at" not in config:
    die()
"""
KILL, TERM, SEGV, ABRT = 9, 15, 11, 6
BEST = (Artifact("best.json"),)


def make(make_run: Any, cells: Mapping[str, Mapping[str, Any]], **changes: Any) -> Any:
    given = {"resume": None, "artifacts": BEST, "train": SCRIPT} | changes
    return make_run(cells, **given)


def doubt_of(run: Any, cell: str) -> str:
    """In the event, in the manifest and in the state that all tables are made of."""
    [told] = [event.data.get("doubt") for event in run.events("cell.succeeded", cell=cell)]
    assert manifest.read_manifest(run.durable.manifest(cell)).doubt == told
    assert state.replay(run.events()).cell(cell).doubt == (told or "")
    return told or ""


def test_a_training_that_is_killed_in_its_middle_is_tried_again(make_run):
    early = {"epochs": 20, "writes": "best.json", "ends": KILL, "at": 3}
    cells = {
        "silent": early,
        "told": early | {"says": "epoch {epoch} loss 0.3"},
        "tslib": early | {"says": "Epoch: {epoch}, Steps: 269 | Train Loss: 0.2"},
        "termed": early | {"ends": TERM},
        "reported": early | {"reports": True},
    }
    run = make(make_run, cells)
    lines = "".join(f"configs/{cell}.json count 20\n" for cell in cells)
    run.durable.queue("q1").write_text(lines)
    assert run.finish() == 0
    for cell in cells:
        assert run.life(cell) == [
            *("claimed", "started", "retried", "started"),
            *("succeeded", "synced", "verified"),
        ], cell
    assert json.loads((run.durable.cell("silent") / "best.json").read_text())["loss"] == 0.05


def test_one_fold_of_ten_is_no_end_of_them_all(make_run):
    """A pattern counts as written with one match, and each fold has its own last epoch."""
    folds = {"epochs": 10, "writes": "fold_{epoch}.json", "ends": KILL, "at": 4}
    cells = {"silent": folds, "told": folds | {"says": "fold {epoch} of 10\nEpoch 3/3"}}
    run = make(make_run, cells, artifacts=(Artifact("fold_*.json"),))
    assert run.finish() == 0
    for cell in cells:
        assert "retried" in run.life(cell)
        assert len(list(run.durable.cell(cell).glob("fold_*.json"))) == 10


def test_a_metric_that_the_job_names_and_nobody_printed_counts_against_it(make_run):
    """What is printed last is lacking where the end is lacking, whatever was reported before."""
    mse = Metric("mse", "log", r"mse:([\d.]+)")
    killed = {"epochs": 3, "writes": "best.json", "reports": True, "ends": KILL}
    cells = {"lacks": killed, "has": killed | {"prints": "mse:0.25"}}
    run = make(make_run, cells, metrics=(mse,))
    assert run.finish() == 0
    assert "retried" in run.life("lacks")
    assert "retried" not in run.life("has")


def test_a_crash_right_after_the_last_write_is_marked_wherever_it_is_read(make_run):
    crash = {"epochs": 3, "writes": "best.json", "ends": SEGV}
    good = {"epochs": 3, "writes": "best.json"}
    run = make(make_run, {"crash": crash, "abort": crash | {"ends": ABRT}, "good": good})
    assert run.finish() == 0
    assert doubt_of(run, "crash") == "SIGSEGV after its last write"
    assert doubt_of(run, "abort") == "SIGABRT after its last write"
    assert doubt_of(run, "good") == ""
    assert [event.data.get("warnings") for event in run.events("cell.succeeded")] == [None] * 3


def test_a_crash_goes_on_where_there_is_a_checkpoint_to_go_on_from(make_run):
    crash = {"epochs": 3, "writes": "best.json", "ends": SEGV}
    run = make(make_run, {"a": crash}, resume="best.json")
    assert run.finish() == 0
    assert "retried" in run.life("a")
    assert doubt_of(run, "a") == ""


def test_a_last_epoch_by_the_log_alone_is_marked(make_run):
    last = {"epochs": 3, "says": "Epoch {epoch}/3", "late": "best.json", "ends": KILL}
    run = make(make_run, {"a": last})
    assert run.finish() == 0
    assert doubt_of(run, "a") == "SIGKILL after its last epoch, by its log alone"


def test_fewer_epochs_than_were_asked_for_mark_a_result(make_run):
    cells = {
        "early": {"epochs": 1, "writes": "best.json", "reports": True},
        "whole": {"epochs": 3, "writes": "best.json", "reports": True},
        "by_log": {"epochs": 1, "writes": "best.json", "says": "Epoch: {epoch}, loss 0.2"},
    }
    run = make(make_run, cells)
    assert run.finish() == 0
    assert [doubt_of(run, cell) for cell in cells] == ["1 of 3 epochs", "", "1 of 3 epochs"]


def test_who_loads_weights_alone_and_trains_all_epochs_again_is_marked(make_run):
    """`--load FILE` is taken for a resume: 1 + 3 of 3 epochs, and nobody was told."""
    killed = {"epochs": 3, "says": "Epoch {epoch}/3", "writes": "best.json", "ends": KILL, "at": 2}
    run = make(make_run, {"a": killed}, resume="best.json")
    assert run.finish() == 0
    assert "retried" in run.life("a")
    assert [event.data.get("resumes") for event in run.events("cell.started")] == [None, True]
    assert doubt_of(run, "a") == "began at epoch 1 again, from a checkpoint: 3 epochs and more"


def test_who_begins_anew_for_lack_of_a_checkpoint_is_not_marked(make_run):
    killed = {"epochs": 3, "says": "Epoch {epoch}/3", "writes": "best.json", "ends": KILL, "at": 2}
    run = make(make_run, {"a": killed}, resume="never.pt")
    assert run.finish() == 0
    assert "retried" in run.life("a")
    assert doubt_of(run, "a") == ""


def test_a_default_that_nobody_asked_for_proves_no_end(make_run):
    """A job whose command takes no epochs has 1 for who counts them."""
    killed = {"epochs": 5, "writes": "best.json", "reports": True, "ends": KILL, "at": 3}
    run = make(make_run, {"a": killed}, epochs=1)
    run.durable.queue("q1").write_text("configs/a.json count\n")
    assert run.finish() == 0
    assert "retried" in run.life("a")
    assert doubt_of(run, "a") == ""


def test_what_lies_behind_a_link_in_the_place_of_out_is_no_success(make_run, tmp_path):
    other = tmp_path / "other"
    script = (
        "import shutil, sys; from pathlib import Path\n"
        f"out, other = Path(sys.argv[2]), Path({str(other)!r})\n"
        "other.mkdir(); (other / 'best.json').write_text('{\"loss\": 0}')\n"
        "shutil.rmtree(out); out.symlink_to(other)\n"
    )
    run = make(make_run, {"a": {}}, train=script, scratch=("*.json",))
    assert run.finish() == 1
    [failed] = run.events("cell.failed")
    assert failed.data["failure"] == "UNFIT"
    assert failed.data["reason"].startswith("{out} is a link now")
    assert not run.durable.manifest("a").exists()
    assert (other / "best.json").exists()


def test_a_kill_for_memory_beside_exit_code_0_marks_what_a_person_put_right(make_run):
    """No event had said that it ended well: its mark is made when it is published."""
    run = make(make_run, {"a": {"epochs": 3, "empty": "best.json"}})
    assert run.finish() == 1
    record = run.scratch().done("a", 1)
    done = attempt.read_done(record)
    assert done is not None
    record.write_bytes(codec.to_document(replace(done, oom_kills=2)))
    (run.out("a") / "best.json").write_text('{"loss": 0}')
    assert run.finish() == 0
    made = manifest.read_manifest(run.durable.manifest("a"))
    assert made.doubt == "exit code 0, but 2 kills for memory while it ran"
    assert state.replay(run.events()).cell("a").doubt == made.doubt


# Rank 0 writes the artifact at once; rank 1 is killed at its first start, as the other is at work.
OF_RANKS = """\
import os, signal, sys, time
from pathlib import Path

out, rank = Path(sys.argv[2]), os.environ["RANK"]
started, best = out / f"started-{rank}", out / "best.json"
is_first = not started.exists()
started.touch()
if rank == "0":
    best.write_text('{"loss": 0.3}' if is_first else '{"loss": 0.1}')
    if is_first:
        time.sleep(600)
elif is_first:
    while not best.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_one_rank_of_two_that_is_killed_is_no_end(make_run):
    run = make(make_run, {"a": {}}, train=OF_RANKS, launcher="torchrun", nproc=2)
    assert run.finish() == 0
    [retried] = run.events("cell.retried")
    assert retried.data["failure"] == "137-N"
    assert json.loads((run.durable.cell("a") / "best.json").read_text())["loss"] == 0.1
    assert doubt_of(run, "a") == ""


# --- the proof


S = 1_000_000_000
KILLED = Left(
    signal="137-N",
    is_abort_at_exit=False,
    is_ended=None,
    names_last=False,
    newest_ns=100 * S,
    reported_ns=0,
    logged_ns=100 * S,
    ended_ns=101 * S,
    may_go_on=False,
    was_told_to_stop=False,
    lacks_metric=False,
)
CRASHED = replace(KILLED, signal="SEGV", logged_ns=102 * S)
PROVEN = replace(KILLED, is_ended=True, reported_ns=100 * S)
NAMED = replace(KILLED, names_last=True, logged_ns=99 * S)


@pytest.mark.parametrize("signal", ["137-N", "TERM", "HUP", "INT", "ILL", "FPE", "U9", ""])
def test_a_signal_that_somebody_sent_is_no_end_by_itself(signal):
    assert success_of(replace(KILLED, signal=signal)) is None


@pytest.mark.parametrize("signal", ["137-N", "TERM", "SEGV"])
@pytest.mark.parametrize("may_go_on", [False, True])
def test_a_last_epoch_that_was_reported_before_the_artifact_is_an_end(signal, may_go_on):
    found = success_of(replace(PROVEN, signal=signal, may_go_on=may_go_on))
    assert found is not None
    assert (found.warning, found.doubt) == (ENDED_BEFORE, "")


@pytest.mark.parametrize(
    "against",
    [{"newest_ns": 99 * S}, {"lacks_metric": True}, {"is_ended": False}, {"is_ended": None}],
)
def test_what_speaks_against_it_leaves_it_unproven(against):
    assert success_of(replace(PROVEN, **against)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signal", "name"), [("SEGV", "SIGSEGV"), ("ABRT", "SIGABRT"), ("BUS", "SIGBUS")]
)
def test_a_crash_right_after_the_last_write_is_a_success_that_is_marked(signal, name):
    found = success_of(replace(CRASHED, signal=signal))
    assert found is not None
    assert (found.warning, found.doubt) == ("", f"{name} after its last write")


@pytest.mark.parametrize(
    "against",
    [
        {"may_go_on": True},
        {"was_told_to_stop": True},
        {"ended_ns": 106 * S},
        {"ended_ns": 90 * S},  # of another time than the attempt's
        {"reported_ns": 101 * S},
        {"lacks_metric": True},
        {"is_ended": False},
    ],
)
def test_a_crash_with_anything_against_it_is_no_end(against):
    assert success_of(replace(CRASHED, **against)) is None  # type: ignore[arg-type]


def test_a_log_that_names_the_last_epoch_before_the_artifact_is_marked():
    found = success_of(NAMED)
    assert found is not None
    assert found.doubt == "SIGKILL after its last epoch, by its log alone"


@pytest.mark.parametrize(
    "against", [{"logged_ns": 100 * S}, {"may_go_on": True}, {"was_told_to_stop": True}]
)
def test_a_log_that_lives_on_after_the_artifact_counts_against_it(against):
    assert success_of(replace(NAMED, **against)) is None  # type: ignore[arg-type]


def test_torchs_own_abort_is_an_end_whatever_else_is_known():
    found = success_of(replace(CRASHED, is_abort_at_exit=True, may_go_on=True, is_ended=False))
    assert found is not None
    assert (found.warning, found.doubt) == (ABORTED_AT_EXIT, "")


@pytest.mark.parametrize(
    ("rc", "oom_kills", "other", "said"),
    [
        (0, 0, "", []),
        (0, 1, "", ["exit code 0, but a kill for memory while it ran"]),
        (0, 2, "3 of 20 epochs", ["exit code 0, but 2 kills for memory while it ran",
                                  "3 of 20 epochs"]),
        (-9, 1, "", []),  # it is what the signal was
    ],
)  # fmt: skip
def test_a_success_is_marked_by_what_was_killed_beside_it_and_by_fewer_epochs(
    rc, oom_kills, other, said
):
    assert doubts(rc, oom_kills, other) == said


# --- what was saved


BEGAN = "2026-11-21T02:00:00.000Z"
BEGAN_S = timestamp.parse_utc(BEGAN).timestamp()


def done(rc: int = 85) -> Done:
    return Done("c", 1, rc, BEGAN, BEGAN, 12.0, 0, was_told_to_stop=True, release="one")


def leave(out: Path, name: str, after_s: float, content: bytes = b"whole") -> None:
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_bytes(content)
    os.utime(out / name, (BEGAN_S + after_s, BEGAN_S + after_s))


def test_only_what_is_newer_than_the_attempts_begin_was_saved_by_it(tmp_path):
    leave(tmp_path, "step_1.pt", -60)
    assert not has_saved(tmp_path, "step_*.pt", done())
    leave(tmp_path, "step_2.pt", 1)
    assert has_saved(tmp_path, "step_*.pt", done())
    assert has_saved(tmp_path, "step_2.pt", done())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04, and no end"])
def test_what_is_not_whole_was_not_saved(tmp_path, content):
    leave(tmp_path, "step_2.pt", 1, content)
    assert not has_saved(tmp_path, "step_*.pt", done())


@pytest.mark.parametrize(("rc", "is_saved"), [(85, True), (1, True), (-9, False), (137, False)])
def test_a_folder_without_an_index_counts_where_its_script_left_by_itself(tmp_path, rc, is_saved):
    (tmp_path / "step_2").mkdir()
    (tmp_path / "step_2" / "weights.pt").write_bytes(b"just now")
    assert has_saved(tmp_path, "step_*/", done(rc)) == is_saved


def test_a_job_that_names_no_checkpoint_saves_none_that_anybody_knows(tmp_path):
    leave(tmp_path, "step_2.pt", 1)
    assert not has_saved(tmp_path, None, done())


def test_what_leads_out_of_its_folder_is_none(tmp_path):
    leave(tmp_path, "elsewhere.pt", 1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/last.pt").symlink_to(tmp_path / "elsewhere.pt")
    assert not has_saved(tmp_path / "out", "last.pt", done())
