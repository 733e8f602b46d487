"""One real file of each format, from a run of the digits example, as version 1 wrote them.

They are never made anew: a reader that cannot take them, or takes them otherwise, would lose the
runs that people have on their disks.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import json
import pkgutil
import shutil
from pathlib import Path
from typing import Any

import pytest
from flips import flipped
from journal_lines import v1_lines

import boxcar.shared
from boxcar.shared import state, timestamp
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import (
    attempt,
    codec,
    control,
    delivered,
    heartbeat,
    journal,
    manifest,
    plan,
    queue_line,
    receipt,
    release,
    resume_pointer,
)
from boxcar.shared.files.attempt import Claim, Done, Processes, Running
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.files.control import AgentStart, Control
from boxcar.shared.files.data_proof import DataProof
from boxcar.shared.files.deadline_notice import DeadlineNotice
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.fetched_data import FetchedData
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.node_order import NodeOrder, NodeWord, read_order, read_word
from boxcar.shared.files.own_end import OwnEnd, read_own_end
from boxcar.shared.files.plan import Artifact, Box, Cell, Plan
from boxcar.shared.files.receipt import (
    Accepted,
    CellReceipt,
    CellVerdict,
    Finding,
    RunReceipt,
    Teardown,
)
from boxcar.shared.files.release import Code, Newest, Release
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.slurm.lease import Lease
from boxcar.shared.slurm.submitted import Seen, Submit
from boxcar.shared.state import CellRecord, Session, Verified

V1 = Path(__file__).resolve().parents[1] / "data" / "v1"
V2 = V1.with_name("v2")

RELEASE = "bbf18a3d788bbd3cb21b03a9e44fb16eb3c040454495279cf38a1e24e58bcd3e"
MANIFEST = "0709eaa0b1e05e700e13f1959682172b12e7425f0c39bc1ec4d4b686395c9cbc"
RECEIPT = "2d1ae3da2c321e6eabde418f9ce366664703fc05bf6d99edcb80c66c635297f0"

DOCUMENTS: dict[str, Any] = {
    "plan.json": Plan,
    "release.json": Release,
    "newest.json": Newest,
    "manifest.json": Manifest,
    "manifest-carried.json": Manifest,
    "cell-receipt.json": CellReceipt,
    "receipt.json": RunReceipt,
    "teardown.json": Teardown,
    "heartbeat.json": Heartbeat,
    "control.json": Control,
    "claim.json": Claim,
    "spec.json": AttemptSpec,
    "running.json": Running,
    "processes.json": Processes,
    "done.json": Done,
    "resume.json": Resume,
    "start.json": AgentStart,
    "own-end.json": OwnEnd,
    "deadline-notice.json": DeadlineNotice,
    "node-order.json": NodeOrder,
    "node-word.json": NodeWord,
    "data-proof.json": DataProof,
    "fetched-data.json": FetchedData,
    "slurm_submit.json": Submit,
    "slurm_lease.json": Lease,
    "slurm_seen.json": Seen,
    "delivered.json": Delivered,
    "accepted.json": Accepted,
    "accepted-lent.json": Accepted,
}


# --- laws for all of them

# Of these there is a version 2: what is read of version 1 is written back as that.
OF_TWO_VERSIONS = {"claim.json", "delivered.json"}
# Has a check since its version 1.
CHECKED = {"accepted.json", "accepted-lent.json"}


@pytest.mark.parametrize("name", sorted(DOCUMENTS.keys() - OF_TWO_VERSIONS))
def test_a_document_is_written_back_byte_for_byte(name):
    data = (V1 / name).read_bytes()
    assert codec.to_document(codec.from_document(DOCUMENTS[name], data, name)) == data


@pytest.mark.parametrize("name", sorted(OF_TWO_VERSIONS))
def test_a_document_of_version_1_is_written_back_as_version_2_with_all_that_it_says(name):
    old = codec.from_document(DOCUMENTS[name], (V1 / name).read_bytes(), name)
    written = codec.to_document(old)
    assert codec.from_document(DOCUMENTS[name], written, name) == old
    assert json.loads(written)["format"].endswith("/2")


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_each_flipped_bit_of_a_document_with_a_check_is_damage(name):
    for bad in flipped((V1 / name).read_bytes(), 1_000, seed=3):
        with pytest.raises(DamagedError):
            codec.from_document(DOCUMENTS[name], bad, name)


@pytest.mark.parametrize("name", sorted(DOCUMENTS.keys() - OF_TWO_VERSIONS - CHECKED))
def test_what_a_newer_version_adds_is_kept(name):
    newer = with_more_fields(json.loads((V1 / name).read_bytes()))
    found = codec.from_document(DOCUMENTS[name], json.dumps(newer).encode(), name)
    assert json.loads(codec.to_document(found)) == newer


def with_more_fields(value: Any) -> Any:
    """The same document with a field more, in itself and in every record of its lists."""
    if isinstance(value, list):
        return [with_more_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    lists = {key: with_more_fields(item) for key, item in value.items() if isinstance(item, list)}
    return value | lists | {"since_version_2": ["kept"]}


def formats() -> set[Any]:
    """Every class of boxcar.shared that is a document."""
    modules = pkgutil.walk_packages(boxcar.shared.__path__, "boxcar.shared.")
    found = (vars(importlib.import_module(module.name)).values() for module in modules)
    classes = (value for value in itertools.chain(*found) if isinstance(value, type))
    return {cls for cls in classes if hasattr(cls, "FORMAT")}


def test_every_format_has_its_file():
    # What a training writes is read again in tests/training/test_v1_files.py.
    names = (*DOCUMENTS, "training/training.json")
    paths = [*(V1 / name for name in names), *(V2 / name for name in OF_TWO_VERSIONS)]
    there = {json.loads(path.read_bytes())["format"] for path in paths}
    versions = {(cls.FORMAT, version) for cls in formats() for version in range(1, cls.VERSION + 1)}
    assert there == {f"boxcar.{name}/{version}" for name, version in versions}


def test_every_format_and_each_of_its_fields_stands_in_the_document():
    text = (V1.parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    for cls in formats():
        assert f"`boxcar.{cls.FORMAT}/{cls.VERSION}`" in text
        for field in dataclasses.fields(cls):
            is_named = f"`{field.name}`" in text or f'"{field.name}"' in text
            assert is_named or field.name == codec.EXTRA, f"{cls.__name__}.{field.name}"
    for type in journal.PUBLIC_TYPES:
        assert f"`{type}` *" in text or type == "box.audit"


def test_every_file_is_read_here():
    # training/ is read by tests/training/test_v1_files.py, laptop/ by tests/laptop, gauges/ by
    # tests/onbox/machine/test_gauge_log.py.
    beside = {"queue.txt", "journal.jsonl", "training", "laptop", "gauges"}
    assert {path.name for path in V1.iterdir()} == {*DOCUMENTS, *beside}


# --- one by one


def test_the_queue():
    data = (V1 / "queue.txt").read_bytes()
    assert queue_line.normalise(data) == data
    queue = queue_line.parse_queue(data)
    cfg = "configs/recon_{}.yaml".format
    assert [*queue.lines] == [
        CellLine(0, 2, "recon_baseline", cfg("baseline"), "reconstruction", 60),
        CellLine(1, 3, "recon_no_aug", cfg("no_aug"), "reconstruction", None),
        CellLine(2, 6, "recon_small_latent", cfg("small_latent"), "reconstruction", 60),
    ]
    assert queue.unfinished == ""


def test_the_plan():
    found = plan.read_plan(V1 / "plan.json")
    boxes = "/srv/digits/.boxcar/local/boxes"
    assert found.boxes == tuple(
        Box(name, f"{boxes}/{name}", f"{boxes}/{name}/system/credentials-digits-ablation.json")
        for name in ("box-a", "box-b")
    )
    assert found.queues == {"queue_1": "box-a", "queue_2": "box-b"}
    assert [(cell.queue, cell.index, cell.name) for cell in found.cells] == [
        ("queue_1", 0, "recon_baseline"),
        ("queue_1", 1, "recon_no_aug"),
        ("queue_1", 2, "recon_small_latent"),
        ("queue_2", 0, "det_two_ranks"),
        ("queue_2", 1, "seg_baseline"),
    ]
    cfg, task = "configs/det_two_ranks.yaml", "detection"
    assert found.cells[3] == Cell("det_two_ranks", cfg, task, 4, "queue_2", 0, nproc=2)
    assert found == Plan(
        run="digits-ablation",
        profile="local",
        durable_dir="/srv/digits/.boxcar/local/durable",
        boxes=found.boxes,
        queues=found.queues,
        cells=found.cells,
        command=(
            *("train.py", "--config", "{cfg}", "--task", "{task}"),
            *("--epochs", "{epochs}", "--out", "{out}"),
        ),
        launcher="torchrun",
        nproc=1,
        cell_nproc={"det_two_ranks": 2},
        epochs=20,
        artifacts=(Artifact("best.pth", ("model", "epoch")), Artifact("metrics.json")),
        resume="latest.pth",
        scratch=("latest.pth",),
        env={"OMP_NUM_THREADS": "1"},
        secrets=(),
        linger_s=0,
        agent_python="/srv/digits/.venv/bin/python",
        training_python="/srv/digits/.venv/bin/python",
    )


def test_the_release_still_has_the_digest_that_is_its_name(tmp_path):
    folder = tmp_path / RELEASE
    folder.mkdir()
    shutil.copy(V1 / "release.json", folder)
    found = release.read_release(folder)
    assert (found.run, found.onbox) == ("digits-ablation", "onbox-f23d94489bb3.pyz")
    assert found.training == "training-0a0bcca53c6c.zip"
    assert found.code == Code("df334ae3e1e4dc0e2b9ab1986c15f8aea14b56f8", True, "code.diff")
    assert len(found.files) == 28
    [own] = [file for file in found.files if file.path == "plan.json"]
    assert manifest.compare_one(V1, own) is None


def test_what_the_laptop_has_proven():
    assert receipt.read_accepted(V1 / "accepted.json") == Accepted(
        run="probe",
        cell="big",
        manifest_sha256="da33af71a693c19fa59413701b074fa1d79e57b084d46514c9b6b1ade4a1fdf6",
        at="2026-11-22T11:38:48.375Z",
        unpickled=("model.pkl",),
        boxcar="0.1.0",
    )


def test_what_the_laptop_has_lent_to_a_box_that_was_rented_anew():
    found = receipt.read_accepted(V1 / "accepted-lent.json")
    assert found and (found.run, found.cell, found.unpickled) == ("tiny", "a", ())
    assert found.is_lent and found.at == "2026-11-22T14:55:16.965Z"


def test_the_manifest():
    found = manifest.read_manifest(V1 / "manifest.json")
    assert manifest.sha256(V1 / "manifest.json") == MANIFEST
    assert found.files[3] == FileRecord(
        "metrics.json", 194, "9f8c0e47e8f314a2f8b4952081e6463a30defda29684102e89fbc3fb42fcb3f8"
    )
    assert found == Manifest(
        run="digits-ablation",
        cell="recon_baseline",
        queue="queue_1",
        box="box-a",
        release=RELEASE,
        attempt=2,
        task="reconstruction",
        cfg="configs/recon_baseline.yaml",
        epochs=60,
        started_at="2026-11-21T03:27:11.122Z",
        ended_at="2026-11-21T03:27:30.329Z",
        files=found.files,
    )
    assert [file.path for file in found.files] == [
        *("recon_baseline.log", "progress.jsonl", "best.pth", "metrics.json")
    ]
    assert found.size_bytes == 114_659


def test_the_manifest_of_a_cell_that_carries_trackers_logs():
    found = manifest.read_manifest(V1 / "manifest-carried.json")
    assert [file.path for file in found.files] == [
        *("a_lr0.1_seed2.log", "progress.jsonl", "metrics.json")
    ]
    heads = {file.path.split("/")[0] for file in found.carried.files}
    assert heads == {"wandb", "swanlog", "tb"} and len(found.carried.files) == 12
    assert found.size_bytes > found.carried.size_bytes == 24_052
    (sentence,) = found.carried.left_out
    assert sentence.startswith("not a file of this cell: ") and "debug-core.log" in sentence


def test_the_receipt_of_a_cell():
    found = receipt.read_cell(V1 / "cell-receipt.json")
    assert found.is_good
    assert (found.cell, found.attempt, found.manifest_sha256) == ("recon_baseline", 2, MANIFEST)
    assert found.findings[0] == Finding(
        path="best.pth",
        kind="torch",
        facts={
            **{"size_bytes": 86541, "tensors": 8, "parameters": 20816, "bytes": 83264},
            "epoch": 60,
        },
    )
    assert found.findings[1].facts["numbers"]["psnr_db"] == 23.60478973388672
    assert found.extra["loader"] == "torch 2.13.0+cpu"


def test_the_receipt_of_the_run_still_has_the_digest_that_was_approved():
    found = receipt.read_run(V1 / "receipt.json")
    assert found.is_full and found.digest == RECEIPT
    assert found.made_at == "2026-11-21T03:28:43.882Z"
    assert [verdict.cell for verdict in found.cells] == [
        *("recon_baseline", "recon_no_aug", "recon_small_latent", "det_two_ranks", "seg_baseline")
    ]
    first = receipt.read_cell(V1 / "cell-receipt.json")
    assert found.cells[0] == CellVerdict(
        "recon_baseline", "queue_1", manifest_sha256=MANIFEST, findings=first.findings
    )
    assert found.cells[4] == CellVerdict(
        cell="seg_baseline",
        queue="queue_2",
        missing=("is not published",),
        because="the box is needed elsewhere; its baseline of last week stands",
    )


def test_the_teardown():
    assert receipt.read_teardown(V1 / "teardown.json") == Teardown(
        run="digits-ablation",
        digest=RECEIPT,
        verb="remove",
        approved_at="2026-11-21T03:28:44.675Z",
        approved_by="--approve",
        finished_at="2026-11-21T03:28:44.847Z",
    )


def test_the_heartbeat():
    found = heartbeat.read_heartbeat(V1 / "heartbeat.json")
    assert found == Heartbeat(
        queue="queue_1",
        box="box-a",
        release=RELEASE,
        at="2026-11-21T03:28:19.664Z",
        pid=31395,
        phase="running",
        cell="recon_small_latent",
        attempt=1,
        progress={
            **{"step": 150, "total_steps": 1200, "epoch": 7, "loss": 0.022776834666728973},
            "at": "2026-11-21T03:28:19.647Z",
        },
        gauges={
            "scratch_free_bytes": 83136438272,
            "scratch_free_inodes": 16302155,
            "durable_free_bytes": 83136438272,
            "durable_free_inodes": 16302155,
            "memory_used_bytes": 2820476928,
        },
        extra={"webhooks": {"f5b0a490545a": {"seq": 22, "disabled": None, "problem": None}}},
    )


def test_the_control():
    assert control.wanted(V1 / "control.json") == control.STOP


def test_the_claim():
    assert attempt.read_claim(V1 / "claim.json") == Claim(
        "recon_baseline", "queue_1", "box-a", "2026-11-21T03:26:58.426Z"
    )


def test_an_attempt_that_runs():
    assert attempt.read_running(V1 / "running.json") == Running(
        cell="recon_no_aug",
        attempt=2,
        pid=31405,
        start_time="485405",
        boot_id="548d8de8-d43c-4932-b467-3dde62b8dc78",
        started_at="2026-11-21T03:27:48.840Z",
    )


def test_an_attempt_that_ended():
    assert attempt.read_done(V1 / "done.json") == Done(
        cell="recon_no_aug",
        attempt=1,
        rc=1,
        started_at="2026-11-21T03:27:30.879Z",
        ended_at="2026-11-21T03:27:46.105Z",
        seconds=15.226,
        oom_kills=0,
        was_told_to_stop=True,
        release="bbf18a3d788bbd3cb21b03a9e44fb16eb3c040454495279cf38a1e24e58bcd3e",
    )


def test_the_mirrored_checkpoint():
    assert resume_pointer.read_resume_pointer(V1) == Resume(
        cell="seg_baseline",
        attempt=1,
        at="2026-11-21T03:28:14.700Z",
        path="latest.pth",
        file=FileRecord(
            "1-1795231694354981681-latest.pth",
            417_269,
            "b4f6924a5624f3a39db8b6be74cda3f8df7dd3ecc46c06a9f6ccb1f27186344d",
        ),
    )


def test_an_agent_that_was_started():
    found = control.read_agent_start(V1 / "start.json")
    assert list(found.env) == ["PATH", "HOME", "USER", "LOGNAME", "SHELL"]
    assert found == AgentStart(
        run="digits-ablation",
        queue="queue_1",
        box="box-a",
        release=RELEASE,
        durable_dir="/root/autodl-fs",
        start_index=0,
        detach=("tmux", "setsid"),
        env=found.env,
        at="2026-11-21T03:27:48.102Z",
    )


def test_an_end_that_a_box_has_asked_for():
    said = 'vast v0: 200 {"success": true}'
    at = "2026-11-29T02:55:00.000Z"
    assert read_own_end(V1 / "own-end.json") == OwnEnd("destroy", at, "vast v0", said, is_over=True)


def test_a_deadline_that_is_near():
    path = V1 / "deadline-notice.json"
    found = codec.from_document(DeadlineNotice, path.read_bytes(), str(path))
    at, mark = "2026-11-29T03:12:44.000Z", "/root/boxcar/tiny/deadline"
    assert found == DeadlineNotice(at, False, 21600, 604800, mark)


def test_what_the_pods_of_a_queue_say_to_each_other():
    order = read_order(V1 / "node-order.json")
    assert order and (order.id, order.nodes, order.beat) == ("fsdp_13b.2.5f0c91d2", 2, 311)
    assert (order.state, order.argv[:3]) == ("go", ("python3", "-m", "torch.distributed.run"))
    assert order.spec.endswith("/cells/fsdp_13b/spec-2.json")
    word = read_word(V1 / "node-word.json")
    assert word == NodeWord("9d2f6c0b7a11e834", order.id, "ended", 312, rc=1)


def test_what_was_delivered():
    endpoint = "f5b0a490545abc1e5128049f57bfbe14641d0bf8ecd1fc8d8c196706460b3366"
    assert delivered.read_delivered(V1 / "delivered.json") == Delivered({endpoint: Cursor(seq=27)})


def test_the_journal_is_read_and_written_back_byte_for_byte():
    data = (V1 / "journal.jsonl").read_bytes()
    reading = journal.parse_journal(data, "journal.jsonl")
    assert len(reading.events) == 27 and reading.torn == b""
    assert v1_lines(reading.events) == data
    assert len({event.id for event in reading.events}) == 27
    for event in reading.events:
        timestamp.parse_utc(event.at)
        assert {"run", "queue", "box"} <= event.data.keys()


def test_the_journal_replays_to_three_verified_cells_and_a_session_that_is_done():
    found = state.replay(journal.read_journal(V1 / "journal.jsonl").events)
    assert found.session == Session(
        at="2026-11-21T03:27:48.436Z",
        pid=31395,
        release=RELEASE,
        box="box-a",
        start_index=0,
        ended="queue.done",
        by="done",
    )
    assert list(found.cells) == ["recon_baseline", "recon_no_aug", "recon_small_latent"]
    # Killed once, retried by the agent, and verified while the next cell ran.
    assert found.cell("recon_baseline") == CellRecord(
        state=Verified(2, "2026-11-21T03:27:34.892Z", MANIFEST),
        attempts=2,
        seconds=pytest.approx(10.881 + 19.208),
        metrics={
            "psnr_db": 23.60478973388672,
            "best_epoch": 60,
            "epochs": 60,
            "train_loss": 0.004219174454919994,
            "params": 20816,
            "seconds": 5.03,
            "world_size": 1,
        },
        times_verified=1,
    )
    # Stopped once, and gone on with by the next agent.
    assert found.cell("recon_no_aug").seconds == pytest.approx(15.226 + 15.559)
    assert found.cell("recon_no_aug").times_verified == 1
