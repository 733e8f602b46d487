from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared import paths
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import checked_copy
from boxcar.shared.errors import NoRoomError
from boxcar.shared.files import codec, manifest, receipt
from boxcar.shared.files.attempt import Done, Running
from boxcar.shared.files.plan import BYTES_ONLY, NEWEST, Artifact, Box, Metric, Plan
from boxcar.shared.files.receipt import Finding
from boxcar.shared.metrics import measure, result_files
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.process import load_child
from onbox.machine.place import Place
from onbox.result import left_artifacts, published, settle

CELL = CellLine(0, 1, "c", "configs/c.json", "count", 3)
NOW = "2026-11-21T02:00:00.000Z"


def done(attempt: int = 1) -> Done:
    return Done("c", attempt, 0, NOW, NOW, 12.0, 0, False, "one")


@pytest.fixture
def place(tmp_path: Path, archives: Any) -> Place:
    """A cell that has left m.json, w.dat and a log on scratch; nothing is published."""
    plan = Plan(
        run="r", profile="local", durable_dir=str(tmp_path / "tier"),
        boxes=(Box("b", str(tmp_path / "b"), ""),), queues={"q": "b"}, cells=(), command=(),
        launcher="python", nproc=1, cell_nproc={}, epochs=None,
        artifacts=(Artifact("m.json", ("step",)), Artifact("w.dat")), resume="latest.json",
        scratch=("latest.json", "epoch_*.json"), env={}, secrets=(), linger_s=0,
        agent_python=sys.executable, training_python=sys.executable,
    )  # fmt: skip
    release = tmp_path / "releases" / ("0" * 64)
    release.mkdir(parents=True)
    (release / archives.training).write_bytes(archives.files[archives.training])
    tier, scratch = DurablePaths(tmp_path / "tier", "r"), ScratchPaths(tmp_path / "b", "r")
    for folder in (*tier.folders(), scratch.out("c")):
        folder.mkdir(parents=True)
    made = Place(plan, release, archives.training, "q", "b", tier, scratch)
    leave(made, "m.json", b'{"step": 7}')
    leave(made, "w.dat", b"weights")
    scratch.log("c").write_bytes(b"epoch 1\n")
    return made


def leave(place: Place, name: str, data: bytes) -> Path:
    path = place.scratch.out("c") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def with_artifacts(place: Place, *artifacts: Artifact) -> Place:
    return replace(place, plan=replace(place.plan, artifacts=artifacts))


def names(made: manifest.Manifest) -> set[str]:
    return {file.path for file in made.files}


def publish_bad(place: Place) -> manifest.Manifest:
    """Publish and verify a result that does not hold up."""
    leave(place, "m.json", b'{"step": NaN}')
    made = settle.publish(place, CELL, done())
    assert not settle.verify(place, made).is_good
    return made


# --- publish


def test_names_of_ours_that_a_script_uses_take_the_place_of_nothing(place):
    """Neither of the manifest, of the log, nor of what is pruned."""
    for name in ("manifest.json", "receipt.json", "c.log", "resume/model.json"):
        leave(place, name, b'{"step": 1}')
    found = ("m.json", "*.json", "*.log", "*/model.json")
    metrics = (Metric("ours", "json", "manifest.json", "attempt"), Metric("loss", "log", "(1)"))
    here = with_artifacts(place, *map(Artifact, found[:2]))
    here = replace(here, plan=replace(here.plan, metrics=metrics, collect=("c.log", "*/")))
    made = settle.publish(here, CELL, done())
    assert names(made) == {"m.json", "c.log"}
    assert (place.durable.cell("c") / "c.log").read_bytes() == b"epoch 1\n"
    assert made.matches == {"*.json": ("m.json",)}
    left_out = sorted(text.split(" ")[0] for text in made.warnings)
    assert left_out == ["manifest.json", "receipt.json"]
    assert manifest.read_manifest(place.durable.manifest("c")) == made
    checked = settle.verify(here, made)
    assert checked.is_good
    assert measure.notes(checked.metrics) == {
        "ours": "manifest.json has a name that Boxcar uses itself: rename it"
    }
    settle.prune(here, "c")
    assert manifest.compare(place.durable.cell("c"), made.all_files) == []
    assert any("c.log" in text for text in made.carried.left_out)


def collecting(place: Place, *wanted: str) -> Place:
    return replace(place, plan=replace(place.plan, collect=wanted))


def test_what_is_collected_is_carried_hashed_and_never_loaded(place):
    leave(place, "wandb/run-1.wandb", b"no JSON")
    leave(place, "wandb/settings", b"[default]")
    leave(place, "tb/bad.json", b"{no JSON either")
    here = collecting(place, "wandb", "tb")
    made = settle.publish(here, CELL, done())
    carried = {file.path for file in made.carried.files}
    assert names(made) == {"m.json", "w.dat", "c.log"}
    assert carried == {"wandb/run-1.wandb", "tb/bad.json"}
    assert manifest.compare(place.durable.cell("c"), made.all_files) == []
    assert made.carried.left_out == ("may hold a secret: wandb/settings",)
    found = settle.verify(here, made)
    assert found.is_good and {finding.path for finding in found.findings} == {"m.json", "w.dat"}


def test_an_artifact_that_is_collected_too_is_an_artifact(place):
    leave(place, "tb/m.json", b"[1]")
    leave(place, "tb/events", b"x")
    here = collecting(with_artifacts(place, Artifact("tb/m.json")), "tb")
    made = settle.publish(here, CELL, done())
    assert names(made) == {"tb/m.json", "c.log"}
    assert [file.path for file in made.carried.files] == ["tb/events"]


def test_no_room_for_what_is_carried_costs_no_result(place, monkeypatch):
    leave(place, "tb/large", b"0123456789")
    real = checked_copy.check_room

    def check_room(folder, sizes_bytes):
        sizes = list(sizes_bytes)
        if sizes == [10]:
            raise NoRoomError("the tier is full")
        real(folder, sizes)

    monkeypatch.setattr(checked_copy, "check_room", check_room)
    made = settle.publish(collecting(place, "tb"), CELL, done())
    assert names(made) == {"m.json", "w.dat", "c.log"} and not made.carried.files
    assert made.carried.left_out == ("could not be copied (the tier is full): tb/large",)


def test_a_job_that_collects_nothing_has_the_manifest_that_it_had(place):
    settle.publish(place, CELL, done())
    assert b"carried" not in place.durable.manifest("c").read_bytes()


def test_everything_is_published_and_the_manifest_says_it_byte_by_byte(place):
    leave(place, "progress.jsonl", b'{"step": 7}\n')
    leave(place, "training.json", b"{}\n")
    leave(place, "latest.json", b"{}")
    made = settle.publish(place, CELL, done())
    assert names(made) == {"m.json", "w.dat", "progress.jsonl", "training.json", "c.log"}
    assert manifest.compare(place.durable.cell("c"), made.files) == []
    assert (made.run, made.queue, made.box, made.attempt) == ("r", "q", "b", 1)
    assert (made.cfg, made.task, made.epochs) == ("configs/c.json", "count", 3)
    assert manifest.read_manifest(place.durable.manifest("c")) == made


def test_a_folder_is_an_artifact_with_all_that_is_in_it(place):
    leave(place, "model/config.json", b"{}")
    leave(place, "model/shards/one.dat", b"1")
    made = settle.publish(with_artifacts(place, Artifact("model")), CELL, done())
    assert names(made) == {"model/config.json", "model/shards/one.dat", "c.log"}


def test_of_a_pattern_the_manifest_says_what_was_taken_and_only_that_is_published(place):
    for name in ("ckpt/step_9.json", "ckpt/step_10.json", "epoch_1.json"):
        leave(place, name, b'{"step": 1}')
    here = with_artifacts(
        place, Artifact("ckpt/step_*.json", take=NEWEST), Artifact("epoch_?.json")
    )
    made = settle.publish(here, CELL, done())
    assert names(made) == {"ckpt/step_10.json", "epoch_1.json", "c.log"}
    assert made.matches == {
        "ckpt/step_*.json": ("ckpt/step_10.json",),
        "epoch_?.json": ("epoch_1.json",),
    }
    found = settle.verify(here, made)
    assert found.is_good
    assert [finding.path for finding in found.findings] == ["ckpt/step_10.json", "epoch_1.json"]


@pytest.mark.parametrize("name", ["m.json", "model/link.json"])
def test_nothing_behind_a_link_that_leads_out_is_published(place, tmp_path, name):
    (tmp_path / "secret").write_bytes(b"secret")
    leave(place, "model/config.json", b"{}")
    path = place.scratch.out("c") / name
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / "secret")
    here = with_artifacts(place, Artifact("model"), Artifact("m.json"))
    with pytest.raises(settle.UnfitError, match=f"{name} is a link that leads out of"):
        settle.publish(here, CELL, done())
    assert not list(place.durable.cell("c").rglob("*"))


def test_a_link_is_published_as_what_it_leads_to_inside_the_cell(place):
    leave(place, "checkpoints/step_120.json", b'{"step": 120}')
    leave(place, "art/metrics.json", b"[1]")
    (place.scratch.out("c") / "art/best.json").symlink_to("../checkpoints/step_120.json")
    (place.scratch.out("c") / "best.json").symlink_to("checkpoints/step_120.json")
    here = with_artifacts(place, Artifact("art"), Artifact("best.json", ("step",)))
    made = settle.publish(here, CELL, done())
    assert names(made) == {"art/best.json", "art/metrics.json", "best.json", "c.log"}
    for name in ("art/best.json", "best.json"):
        copy = place.durable.cell("c") / name
        assert not copy.is_symlink() and copy.read_bytes() == b'{"step": 120}'
    assert settle.verify(here, made).is_good


def test_an_empty_file_in_a_folder_is_published_and_no_obstacle(place):
    leave(place, "art/_SUCCESS", b"")
    leave(place, "art/metrics.json", b"[1]")
    here = with_artifacts(place, Artifact("art"))
    made = settle.publish(here, CELL, done())
    assert names(made) == {"art/_SUCCESS", "art/metrics.json", "c.log"}
    found = settle.verify(here, made)
    assert found.is_good
    assert [finding.path for finding in found.findings] == ["art/metrics.json"]


def test_an_artifact_that_is_not_there_is_missing_and_an_empty_one_is_a_problem(place):
    found = left_artifacts.look(place, "c")
    assert (found.missing, found.problem) == ([], "")
    leave(place, "m.json", b"")
    (place.scratch.out("c") / "w.dat").unlink()
    found = left_artifacts.look(place, "c")
    assert found.missing == ["w.dat"]
    assert found.problem.startswith("m.json is empty (0 bytes). It is kept in ")


def test_a_name_that_the_tier_refuses_is_this_cells_problem(place, monkeypatch):
    def refuse(source, temporary, on_chunk, **_options):
        raise OSError(errno.EILSEQ, "Invalid or incomplete multibyte character", str(temporary))

    monkeypatch.setattr(checked_copy, "copy_and_hash", refuse)
    with pytest.raises(settle.UnfitError, match=r"^c\.log cannot be copied"):
        settle.publish(place, CELL, done())


def test_a_log_that_the_script_removed_keeps_no_result_back(place):
    place.scratch.log("c").unlink()
    assert names(settle.publish(place, CELL, done())) == {"m.json", "w.dat"}


def test_a_name_that_is_no_unicode_is_published(place):
    name = os.fsdecode(b"model/\xff.bin")
    leave(place, name, b"x")
    made = settle.publish(with_artifacts(place, Artifact("model")), CELL, done())
    assert name in names(made)


def test_nothing_is_published_without_an_artifact_of_the_job(place):
    (place.scratch.out("c") / "w.dat").unlink()
    with pytest.raises(Exception, match=r"w\.dat"):
        settle.publish(place, CELL, done())
    assert not place.durable.manifest("c").exists()


def test_the_first_result_stays_whatever_a_later_attempt_brings(place):
    first = settle.publish(place, CELL, done(1))
    leave(place, "m.json", b'{"step": 8}')
    assert settle.publish(place, CELL, done(2)) == first
    assert (place.durable.cell("c") / "m.json").read_bytes() == b'{"step": 7}'


def test_a_result_that_is_known_to_be_bad_is_replaced_and_kept_aside(place):
    publish_bad(place)
    assert not published.stands(place.durable, "c")
    leave(place, "m.json", b'{"step": 8}')
    made = settle.publish(place, CELL, done(2))
    assert made.attempt == 2
    assert published.stands(place.durable, "c")
    aside = list((place.durable.root / "replaced").iterdir())
    assert len(aside) == 1
    assert (aside[0] / "m.json").read_bytes() == b'{"step": NaN}'
    assert not place.durable.receipt("c").exists()


def test_too_little_room_is_said_before_anything_is_copied(place, monkeypatch):
    monkeypatch.setattr(checked_copy, "SPARE_BYTES", 1 << 62)
    with pytest.raises(NoRoomError, match="MB are free"):
        settle.publish(place, CELL, done())
    assert list(place.durable.cell("c").iterdir()) == []


def test_killed_at_any_step_and_run_again_it_is_published_once_and_whole(place):
    leave(place, "model/config.json", b"{}")
    here = with_artifacts(place, Artifact("model"), *place.plan.artifacts)
    step = 0
    while dies_at(step := step + 1, here, lambda: settle.publish(here, CELL, done())):
        path = here.durable.manifest("c")
        if path.exists():
            assert manifest.compare(path.parent, manifest.read_manifest(path).files) == []
    assert step > 10
    made = manifest.read_manifest(here.durable.manifest("c"))
    assert names(made) == {"model/config.json", "m.json", "w.dat", "c.log"}
    parts = [path.name for path in here.durable.cell("c").rglob("*.part")]
    assert not [name for name in parts if "manifest" not in name]  # of those a few bytes may stay


def test_killed_at_any_step_a_bad_result_is_replaced_and_never_lost(place):
    publish_bad(place)
    leave(place, "m.json", b'{"step": 8}')
    step = 0
    while dies_at(step := step + 1, place, lambda: settle.publish(place, CELL, done(2))):
        kept = [place.durable.cell("c"), *(place.durable.root / "replaced").glob("*")]
        texts = [path.read_bytes() for folder in kept for path in folder.glob("m.json")]
        assert b'{"step": NaN}' in texts, f"killed at step {step}"
    assert manifest.read_manifest(place.durable.manifest("c")).attempt == 2


def dies_at(step: int, place: Place, work: Callable[[], object]) -> bool:
    """Do the work in a child that ends before its file operation of this number; whether it did."""
    pid = os.fork()
    if pid == 0:
        count = iter(range(1, 1000))
        watched = {"open", "os.rename", "os.remove", "os.mkdir", "os.link"}

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            is_ours = event in watched and str(place.durable.root) in str(arguments[0])
            if is_ours and next(count) == step:
                os._exit(1)

        sys.addaudithook(hook)
        try:
            work()
        except BaseException:
            os._exit(2)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 1), f"killed at step {step - 1} and run again, it raised"
    return code == 1


# --- verify


def test_what_loads_and_holds_its_keys_gets_a_good_receipt(place):
    made = settle.publish(place, CELL, done())
    found = settle.verify(place, made)
    assert found.is_good
    assert {finding.path for finding in found.findings} == {"m.json", "w.dat"}
    assert found.manifest_sha256 == manifest.sha256(place.durable.manifest("c"))
    assert result_files.of_result(found.metrics, found.findings) == {"step": 7}
    assert receipt.read_cell(place.durable.receipt("c")) == found


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b'{"step": NaN}', "NaN"), (b'{"loss": 1}', "step"), (b'{"step": 1', "not JSON")],
)
def test_what_does_not_hold_up_is_named_with_its_problem(place, data, problem):
    leave(place, "m.json", data)
    found = settle.verify(place, settle.publish(place, CELL, done()))
    assert not found.is_good
    assert "m.json" in settle.problems(found)
    assert problem in settle.problems(found)


def test_a_published_result_without_an_artifact_of_the_job_is_not_good(place):
    made = settle.publish(with_artifacts(place, Artifact("m.json")), CELL, done())
    found = settle.verify(place, made)
    assert not found.is_good
    assert "w.dat" in settle.problems(found)


def test_a_file_of_two_artifacts_must_hold_the_keys_of_both(place):
    leave(place, "model/m.json", b'{"step": 1}')
    keyed = Artifact("model/m.json", ("epoch",))
    here = with_artifacts(place, keyed, Artifact("model"))
    assert not settle.verify(here, settle.publish(here, CELL, done())).is_good


def test_a_name_that_is_no_unicode_is_loaded_and_said(place):
    name = os.fsdecode(b"model/caf\xe9.json")
    leave(place, name, b'{"step": 7}')
    here = with_artifacts(place, Artifact("model"))
    found = settle.verify(here, settle.publish(here, CELL, done()))
    assert found.is_good
    assert [finding.path for finding in found.findings] == [name]


def test_what_nobody_could_check_is_not_called_bad_unless_something_else_is(place, monkeypatch):
    unchecked = Finding("w.dat", load_child.UNCHECKED, ("could not be checked",))
    good, bad = Finding("m.json", "json"), Finding("m.json", "json", ("lacks a key",))

    def verified(*findings):
        loaded = load_child.Loaded({finding.path: finding for finding in findings})
        monkeypatch.setattr(load_child, "load", lambda *_: loaded)
        return settle.verify(place, settle.publish(place, CELL, done()))

    with pytest.raises(settle.UncheckedError, match=r"w\.dat could not be checked"):
        verified(good, unchecked)
    assert not place.durable.receipt("c").exists()
    assert not verified(bad, unchecked).is_good


def test_without_the_checker_nothing_is_found_good(place):
    here = replace(place, training_zip="none.zip")
    here = replace(here, plan=replace(here.plan, training_python="/bin/false"))
    made = settle.publish(here, CELL, done())
    with pytest.raises(Exception, match="/bin/false"):
        settle.verify(here, made)
    assert not here.durable.receipt("c").exists()


# --- prune


def test_only_the_declared_scratch_and_the_mirror_are_pruned(place):
    for name in ("latest.json", "epoch_1.json", "epoch_2.json", "notes.json"):
        leave(place, name, b"{}")
    settle.publish(place, CELL, done())
    place.durable.resume("c").mkdir(parents=True)
    (place.durable.resume("c") / "resume.json").write_bytes(b"{}")
    settle.prune(place, "c")
    left = {path.name for path in place.scratch.out("c").iterdir()}
    assert left == {"m.json", "w.dat", "notes.json"}
    assert not place.durable.resume("c").exists()
    settle.prune(place, "c")


def test_what_an_older_agent_published_below_resume_is_not_pruned(place, monkeypatch):
    monkeypatch.setattr(paths, "is_own_name", lambda name, cell: False)
    leave(place, "resume/model.json", b"{}")
    here = with_artifacts(place, Artifact("m.json"), Artifact("*/model.json"))
    made = settle.publish(here, CELL, done())
    (place.durable.resume("c") / "resume.json").write_bytes(b"{}")
    settle.prune(here, "c")
    assert [path.name for path in place.durable.resume("c").iterdir()] == ["model.json"]
    assert manifest.compare(place.durable.cell("c"), made.files) == []


def test_nothing_outside_the_cells_own_folder_is_pruned(place, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/latest.json").write_bytes(b"{}")
    out = place.scratch.out("c")
    (out / "link").symlink_to(tmp_path / "other")
    (out / "latest.json").symlink_to(tmp_path / "other/latest.json")
    outside = leave(place, "../sibling.json", b"{}")
    patterns = ("latest.json", "../sibling.json", "link/*", "**/*.json")
    settle.prune(replace(place, plan=replace(place.plan, scratch=patterns)), "c")
    assert (tmp_path / "other/latest.json").exists()
    assert outside.exists()


def test_nothing_is_pruned_through_a_link_in_the_place_of_out(place, tmp_path):
    out, other = place.scratch.out("c"), tmp_path / "other"
    other.mkdir()
    (other / "latest.json").write_bytes(b"{}")
    out.rename(tmp_path / "before")
    out.symlink_to(other)
    settle.prune(place, "c")
    assert (other / "latest.json").exists()


# --- the log


def test_the_log_of_a_cell_that_failed_is_kept_on_the_tier(place):
    settle.save_log(place, "c")
    assert (place.durable.cell("c") / "c.log").read_bytes() == b"epoch 1\n"


def test_the_log_of_a_published_cell_stays_as_it_was_published(place):
    made = settle.publish(place, CELL, done())
    place.scratch.log("c").write_bytes(b"epoch 1\nepoch 2\n")
    settle.save_log(place, "c")
    assert manifest.compare(place.durable.cell("c"), made.files) == []


def test_a_receipt_of_another_manifest_condemns_nothing(place):
    publish_bad(place)
    path = place.durable.receipt("c")
    record = json.loads(path.read_bytes()) | {"manifest_sha256": "0" * 64}
    path.write_text(json.dumps(record))
    assert published.stands(place.durable, "c")


def test_the_manifest_of_another_version_is_no_manifest(place):
    made = settle.publish(place, CELL, done())
    data = codec.to_document(made).replace(b"boxcar.manifest/1", b"boxcar.manifest/9")
    place.durable.manifest("c").write_bytes(data)
    with pytest.raises(Exception, match=r"boxcar\.manifest/9"):
        settle.publish(place, CELL, done())


def test_lines_of_progress_that_are_no_file_of_the_cell_are_not_published(place):
    out = place.scratch.out("c")
    os.mkfifo(out / "progress.jsonl")
    (out.parent / "secret").write_bytes(b"not yours")
    (out / "training.json").symlink_to("../secret")
    made = settle.publish(place, CELL, done())
    assert {file.path for file in made.files} == {"m.json", "w.dat", "c.log"}


def test_lines_of_progress_that_are_a_link_inside_the_cell_are_published(place):
    leave(place, "logs/lines", b'{"step": 7}\n')
    (place.scratch.out("c") / "progress.jsonl").symlink_to("logs/lines")
    made = settle.publish(place, CELL, done())
    assert "progress.jsonl" in {file.path for file in made.files}


def test_nothing_is_written_where_a_tier_was_unmounted(place):
    root = place.durable.root
    root.rename(root.with_name("unmounted"))
    root.mkdir()
    with pytest.raises(FileNotFoundError, match="mounted"):
        settle.publish(place, CELL, done())
    assert list(root.iterdir()) == []


# --- numbers that the job names

METRICS = (
    Metric("loss", "log", "loss ([0-9.]+)", best="min"),
    Metric("top1", "csv", "logs/s.csv", key="top1"),
    Metric("dice", "json", "gone.json", key="dice"),
)


def with_metrics(place: Place) -> Place:
    return replace(place, plan=replace(place.plan, metrics=METRICS))


def test_what_metrics_name_is_published_beside_the_artifacts_and_taken_from_there(place):
    here = with_metrics(place)
    leave(here, "logs/s.csv", b"top1\n0.5\n")
    earlier = b"loss 0.1\n=== attempt 2 ===\n"
    here.scratch.log("c").write_bytes(earlier + b"loss 0.75\nloss 0.25\nloss 0.5\n")
    running = Running("c", 2, 1, "", "", NOW, log_begins_at_bytes=len(earlier))
    here.scratch.running("c").write_bytes(codec.to_document(running))
    made = settle.publish(here, CELL, done(2))
    assert names(made) == {"m.json", "w.dat", "c.log", "logs/s.csv"}
    assert made.log_begins_at_bytes == len(earlier)
    found = settle.verify(here, made)
    assert found.is_good, "a number that is not there fails nothing"
    numbers = result_files.of_result(found.metrics, found.findings)
    assert numbers == {"loss": 0.25, "top1": 0.5, "dice": None, "step": 7}
    assert list(numbers) == ["loss", "top1", "dice", "step"]
    assert measure.notes(found.metrics) == {"dice": "gone.json is not there"}
    assert receipt.read_cell(place.durable.receipt("c")) == found


def test_of_another_attempt_it_is_not_known_where_the_log_begins(place):
    running = Running("c", 1, 1, "", "", NOW, log_begins_at_bytes=4)
    place.scratch.running("c").write_bytes(codec.to_document(running))
    assert settle.publish(with_metrics(place), CELL, done(2)).log_begins_at_bytes == 0


def test_what_job_yaml_loads_otherwise_by_now_is_judged_anew_and_not_trained_again(place):
    made = publish_bad(place)
    assert not published.stands(place.durable, "c")
    same = place.plan.artifacts
    assert not published.forget_if_loaded_otherwise(place.durable, "c", same)
    assert published.is_known_bad(place.durable, "c")
    as_bytes = with_artifacts(place, Artifact("m.json", load=BYTES_ONLY), Artifact("w.dat"))
    wanted = as_bytes.plan.artifacts
    assert published.forget_if_loaded_otherwise(place.durable, "c", wanted)
    assert published.stands(place.durable, "c")
    found = settle.verify(as_bytes, made)
    assert found.is_good and settle.bytes_only(found) == ["m.json", "w.dat"]
    assert not published.forget_if_loaded_otherwise(place.durable, "c", same), "it is good"


def test_keys_of_a_pattern_whose_matches_are_of_two_kinds_name_the_file_that_lacks_them(place):
    place = with_artifacts(place, Artifact("left/*", ("step",)))
    leave(place, "left/a.json", b'{"step": 7}')
    leave(place, "left/b.csv", b"epoch,loss\n1,0.5\n")
    leave(place, "left/c.txt", b"notes")
    found = settle.verify(place, settle.publish(place, CELL, done()))
    assert {one.path: one.problems for one in found.findings} == {
        "left/a.json": (),
        "left/b.csv": ("lacks the key 'step'; it holds epoch, loss",),
        "left/c.txt": ("cannot be asked for the key 'step': it is only bytes",),
    }
    assert "left/b.csv: lacks the key" in settle.problems(found)


@pytest.mark.parametrize(("log", "is_good"), [(b"loss 0.1\n", True), (b"", False)])
def test_a_cell_that_leaves_no_artifact_is_proven_by_its_log_if_that_says_anything(
    place, log, is_good
):
    place = with_artifacts(place)
    place.scratch.log("c").write_bytes(log)
    made = settle.publish(place, CELL, done())
    found = settle.verify(place, made)
    assert [finding.path for finding in found.findings] == ["c.log"]
    assert found.is_good == is_good
