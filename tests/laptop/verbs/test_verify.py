from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from finished_run import ARTIFACTS, FILES, FinishedRun, make_run, steps_until_end
from run_on_disk import cell_failed, cell_started

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError, NoRoomError
from boxcar.shared.files import codec, journal, receipt
from boxcar.shared.files.plan import Artifact, Metric
from boxcar.shared.files.receipt import Accepted, CellReceipt, Finding, Number, RunReceipt
from boxcar.shared.process.load_child import Loaded, Manner
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import accept as on_box

needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    run = make_run(tmp_path)
    run.copy_here()
    return run


def _receipt(run: FinishedRun) -> RunReceipt:
    return receipt.read_run(run.project.results.receipt)


def _missing(run: FinishedRun) -> dict[str, tuple[str, ...]]:
    return {verdict.cell: verdict.missing for verdict in _receipt(run).cells}


def _said(run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    verify(run.project, as_json=True)
    return json.loads(capsys.readouterr().out)


def _rows(said: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["cell"], row["command"]) for cell in said["cells"] for row in cell["missing"]]


def test_verify_writes_a_full_receipt_and_shows_the_numbers(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(run.project) == 0
    made = _receipt(run)
    assert made.is_full and made.run == "tiny"
    assert [verdict.cell for verdict in made.cells] == ["a", "b"]
    for verdict in made.cells:
        manifest = run.site.tier.manifest(verdict.cell)
        assert verdict.manifest_sha256 == receipt.digest.of_bytes(manifest.read_bytes())
        assert [finding.path for finding in verdict.findings] == list(ARTIFACTS)
    assert made.extra["loader"]
    told = capsys.readouterr()
    assert "psnr 31.25" in told.out and "step" not in told.out
    assert made.digest[:12] in told.err


def test_what_the_boxes_have_written_since_the_pull_is_brought_along(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    sha256 = digest.of_file(run.site.tier.manifest("a"))
    found = tuple(Finding(name, "json") for name in ARTIFACTS)
    made = CellReceipt("tiny", "a", 1, sha256, timestamp.utc_now(), found)
    run.site.tier.receipt("a").write_bytes(codec.to_document(made))
    run.say("q1", ("queue.done", {"verified": 2, "failed": 0}))
    assert verify(run.project) == 0
    assert run.here("a", paths.RECEIPT).read_bytes() == run.site.tier.receipt("a").read_bytes()
    kept = run.project.results.journals / "q1.jsonl"
    assert kept.read_bytes() == run.site.tier.journal("q1").read_bytes()
    run.site.tier.receipt("a").write_bytes(b"{")
    assert verify(run.project) == 1, "what is damaged there is no news"
    assert "the receipt on the tier is damaged" in capsys.readouterr().err


def test_a_journal_that_is_damaged_on_the_tier_is_no_reason_to_pull_it(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """The copy here may be the only whole one."""
    with run.site.tier.journal("q1").open("ab") as file:
        file.write(b'{"broken\n')
    assert verify(run.project) == 1
    said = capsys.readouterr().err
    assert "the event log q1 on the tier is damaged" in said and "repair" in said
    assert "differs from the one on the tier" not in said


def test_what_a_person_should_know_of_a_result_is_said(tmp_path: Path, capsys: Any) -> None:
    run = make_run(tmp_path, cells=("a",))
    shutil.rmtree(run.site.tier.cell("a"))
    run.publish("a", warnings=("it left data/ beside its code",))
    run.copy_here()
    assert verify(run.project) == 0
    assert "a: warning: it left data/ beside its code" in capsys.readouterr().err
    assert _said(run, capsys)["cells"][0]["warnings"] == ["it left data/ beside its code"]


def test_a_result_in_doubt_is_marked_and_counts(tmp_path: Path, capsys: Any) -> None:
    run = make_run(tmp_path, cells=("a",))
    shutil.rmtree(run.site.tier.cell("a"))
    run.publish("a", doubt="SIGSEGV after its last write")
    run.copy_here()
    assert verify(run.project) == 0
    assert "a: not certain: SIGSEGV after its last write" in capsys.readouterr().err
    assert _said(run, capsys)["cells"][0]["doubt"] == "SIGSEGV after its last write"


def test_a_cell_that_failed_and_whose_line_is_gone_is_missing_until_it_is_abandoned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path)
    run.write_queue("q1", "# configs/bad.yaml recon\n")
    run.say("q1", cell_started("bad"), cell_failed("bad"))
    run.copy_here()
    assert verify(run.project) == 1
    assert _missing(run)["bad"] == ("failed, so it has no result",)
    assert down(run.project) == 1
    assert "bad" in capsys.readouterr().err
    down(run.project, abandon=["bad"], because="it diverges", approve="0" * 12)
    assert verify(run.project) == 0


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("at", [0, 5, -1])
def test_one_flipped_byte_is_named(run: FinishedRun, name: str, at: int) -> None:
    run.flip_byte(run.here("a", name), at)
    assert verify(run.project) == 1
    assert [text.split()[0] for text in _missing(run)["a"]] == [name]
    assert _missing(run)["b"] == ()


@pytest.mark.parametrize("at", [0, 40, -2])
def test_one_flipped_byte_of_a_manifest_is_noticed(run: FinishedRun, at: int) -> None:
    run.flip_byte(run.here("a", paths.MANIFEST), at)
    assert verify(run.project) == 1
    assert _missing(run)["a"] and not _missing(run)["b"]


def test_what_is_missing_comes_with_the_command_that_mends_it(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.write_queue("q1", "configs/c.yaml seg\nconfigs/d.yaml seg\nconfigs/e.yaml seg\n")
    run.publish("c")
    log = journal.Journal(run.site.tier.journal("q1"), {"run": "tiny"})
    log.append("cell.failed", cell="d", attempt=1, failure="oom", reason="memory", release="r1")
    (run.here("a", "metrics.json")).unlink()
    run.publish("b", FILES | {"weights.dat": b"newer"})
    assert verify(run.project) == 1
    assert _rows(_said(run, capsys)) == [
        ("a", "invoke pull"),
        ("b", "invoke pull"),
        ("c", "invoke pull"),
        ("d", "invoke explain --cell d"),
        ("e", "invoke launch"),
    ]


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (FILES | {"weights.dat": b""}, "weights.dat"),
        (FILES | {"metrics.json": b'{"psnr": NaN}'}, "metrics.json"),
        (FILES | {"metrics.json": b'{"psnr": '}, "metrics.json"),
        ({"weights.dat": b"x"}, "metrics.json"),
    ],
)
def test_a_published_artifact_that_makes_no_sense_is_named(
    tmp_path: Path, files: dict[str, bytes], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path)
    run.publish("a", files)
    run.copy_here()
    assert _rows(_said(run, capsys)) == [("a", "invoke explain --cell a")]
    assert _missing(run)["a"][0].startswith(named)


def test_every_file_of_an_artifact_that_is_a_folder_is_loaded(tmp_path: Path) -> None:
    run = make_run(tmp_path, cells=("a",), artifacts=("shards",))
    run.publish("a", {"shards/1.json": b"{}", "shards/deep/2.json": b"{", "shards.json": b"{"})
    run.copy_here()
    assert verify(run.project) == 1
    assert [text.split(":")[0] for text in _missing(run)["a"]] == ["shards/deep/2.json"]


@needs_rsync
@pytest.mark.parametrize("at", [0, 300, -3])
def test_a_damaged_manifest_on_the_tier_is_called_that_and_no_new_result(
    run: FinishedRun, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = run.site.tier.manifest("a")
    good = Finding("weights.dat", "bytes")
    found = CellReceipt("tiny", "a", 1, digest.of_bytes(manifest.read_bytes()), "then", (good,))
    for path in (run.site.tier.receipt("a"), run.here("a", paths.RECEIPT)):
        path.write_bytes(codec.to_document(found))
    run.flip_byte(manifest, at)
    assert _rows(_said(run, capsys)) == [("a", "invoke repair")]
    (why,) = _missing(run)["a"]
    assert why.startswith("the manifest") and "damaged" in why and "The copy here is kept" in why
    capsys.readouterr()
    assert pull(run.project) == 1
    told = capsys.readouterr().err
    assert "a was not pulled: the manifest" in told and "damaged" in told and "repair" in told


@needs_rsync
def test_a_name_that_is_not_utf8_is_pulled_verified_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, artifacts=("art",))
    run.publish("a", {os.fsdecode(b"art/eval_caf\xe9.json"): b'{"dice": 0.5}'})
    run.publish("b", {os.fsdecode(b"art/eval_caf\xe9.json"): b'{"dice": '})
    assert pull(run.project) == 0
    assert verify(run.project) == 1
    assert _missing(run)["a"] == ()
    assert _missing(run)["b"][0].startswith(os.fsdecode(b"art/eval_caf\xe9.json: is not JSON"))
    told = capsys.readouterr()
    assert "dice 0.5" in told.out and "eval_caf\\udce9.json" in told.err


def test_a_pickle_is_loaded_only_where_it_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run = make_run(tmp_path, artifacts=("data.pkl",))
    for cell in ("a", "b"):
        run.publish(cell, {"data.pkl": pickle.dumps({"made": zipfile.ZipInfo("x")})})
    run.copy_here()
    assert verify(run.project, allow_pickle=["a/data.pkl"]) == 1
    assert _missing(run)["a"] == ()
    assert "data.pkl" in _missing(run)["b"][0]


def test_allow_pickle_needs_a_name_that_is_there(run: FinishedRun) -> None:
    with pytest.raises(InputError, match=r"other\.pkl"):
        verify(run.project, allow_pickle=["weights.dat", "other.pkl"])
    assert not run.project.results.receipt.exists()


def test_a_stray_folder_is_reported_and_left_alone(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    stray = run.project.results.cell("stray")
    stray.mkdir()
    assert verify(run.project) == 0
    assert str(stray) in capsys.readouterr().err
    assert stray.is_dir()
    assert _said(run, capsys)["strays"] == [str(stray)]


def test_a_published_cell_that_nobody_asked_for_is_not_passed_over(run: FinishedRun) -> None:
    run.publish("stray")
    assert verify(run.project) == 1


def test_a_damaged_plan_of_a_release_is_not_passed_over(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(run.project) == 0
    assert "next: invoke down" in capsys.readouterr().err
    (run.write_release("r1", "a") / "plan.json").write_bytes(b"{")
    assert verify(run.project) == 1
    assert "invoke down" not in capsys.readouterr().err


def test_the_cells_of_two_releases_have_to_be_there(run: FinishedRun) -> None:
    run.write_release("r1", "a", "first")
    run.write_release("r2", "b", "second")
    assert verify(run.project) == 1
    assert {cell for cell, missing in _missing(run).items() if missing} == {"first", "second"}


def test_an_empty_roster_is_not_verified(tmp_path: Path) -> None:
    assert verify(make_run(tmp_path, cells=()).project) == 1


def test_without_the_tier_the_copies_are_judged_by_themselves(run: FinishedRun) -> None:
    verify(run.project)
    before = _receipt(run).digest
    shutil.rmtree(run.site.tier.root)
    assert verify(run.project) == 0
    assert _receipt(run).digest == before


@needs_rsync
def test_the_digest_is_that_of_the_results_and_not_of_the_time(run: FinishedRun) -> None:
    verify(run.project)
    before = _receipt(run)
    verify(run.project)
    assert _receipt(run).digest == before.digest
    run.publish("a", FILES | {"weights.dat": b"newer"})
    pull(run.project)
    verify(run.project)
    assert _receipt(run).is_full and _receipt(run).digest != before.digest


def _abandon(run: FinishedRun, cell: str) -> None:
    made = _receipt(run)
    cells = tuple(
        receipt.CellVerdict(v.cell, v.queue, v.manifest_sha256, v.missing, "it diverged")
        if v.cell == cell
        else v
        for v in made.cells
    )
    document = codec.to_document(RunReceipt("tiny", made.made_at, cells))
    run.project.results.receipt.write_bytes(document)


@needs_rsync
def test_an_abandoned_cell_stays_so_while_it_is_missing(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.write_queue("q1", "configs/c.yaml seg\n")
    assert verify(run.project) == 1
    _abandon(run, "c")
    assert verify(run.project) == 0
    assert "c: abandoned because it diverged" in capsys.readouterr().err
    assert [cell["state"] for cell in _said(run, capsys)["cells"]] == [
        "verified",
        "verified",
        "abandoned",
    ]
    run.publish("c")
    pull(run.project)
    assert verify(run.project) == 0
    assert _receipt(run).cells[2].because is None


def test_a_damaged_receipt_is_kept_and_made_anew(run: FinishedRun) -> None:
    run.project.results.receipt.write_bytes(b"{")
    assert verify(run.project) == 0
    kept = list((run.project.results.root / "replaced").glob("receipt.json-*"))
    assert [path.read_bytes() for path in kept] == [b"{"]


# --- what a box called failed


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedRun:
    """Cell a is published with a pickle that its box would not load. Box and loader answer in this
    process.
    """
    run = make_run(tmp_path, cells=("a",), artifacts=("data.pkl",))
    shutil.rmtree(run.site.tier.cell("a"))
    run.publish("a", {"data.pkl": pickle.dumps({"lr": Fraction(1, 3)})})
    run.say("q1", cell_started("a"), cell_failed("a"))
    run.copy_here()
    monkeypatch.setattr(LocalSite, "ask", _answered_here)
    monkeypatch.setattr("boxcar.laptop.verbs.verify.load", _loaded_here)
    return run


def _loaded_here(folder: Path, files: Sequence[Artifact], manner: Manner) -> Loaded:
    found = {
        file.path: Finding(
            file.path,
            "pickle",
            () if file.path in manner.allow_pickle else ("would execute code",),
        )
        for file in files
    }
    return Loaded(found, "in this process")


def _answered_here(self: LocalSite, box: str, question: Any, **more: Any) -> Any:
    plan = self.plan
    return on_box.answer(question, RunOnBox(plan.run, plan.durable_dir, plan.box(box).data_dir))


def _kept(run: FinishedRun) -> Accepted | None:
    return receipt.accepted_result(run.site.tier, "a")


def test_what_is_proven_here_is_told_to_the_box_that_called_it_failed(
    refused: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(refused.project) == 1
    assert _kept(refused) is None
    assert verify(refused.project, allow_pickle=["data.pkl"]) == 0
    kept = _kept(refused)
    assert kept and (kept.unpickled, kept.at) == (("data.pkl",), _receipt(refused).made_at)
    assert "data.pkl unpickled; it is not retrained" in capsys.readouterr().err


def test_what_was_allowed_is_remembered_and_not_unpickled_again(
    refused: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    verify(refused.project, allow_pickle=["data.pkl"])
    first = _receipt(refused)
    refused.site.tier.accepted("a").unlink()
    capsys.readouterr()
    assert verify(refused.project) == 0
    assert "not repeated" in capsys.readouterr().err
    assert _receipt(refused).cells == first.cells
    assert _kept(refused), "what is gone is written anew"
    refused.site.tier.accepted("a").write_bytes(b"{")
    assert verify(refused.project) == 0
    assert _kept(refused), "what is damaged, too"


def test_what_was_published_again_has_to_be_allowed_again(refused: FinishedRun) -> None:
    verify(refused.project, allow_pickle=["data.pkl"])
    refused.publish("a", {"data.pkl": pickle.dumps({"lr": Fraction(1, 7)})}, attempt=2)
    for folder in (refused.project.results.cell("a"), refused.project.results.journals):
        shutil.rmtree(folder)
    refused.copy_here()
    assert verify(refused.project) == 1
    assert "would execute code" in _missing(refused)["a"][0]
    assert _kept(refused) is None


def test_a_box_that_cannot_be_told_is_no_success(
    refused: FinishedRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **more: Any) -> Any:
        raise NoRoomError("no room on the tier")

    monkeypatch.setattr(LocalSite, "ask", full)
    assert verify(refused.project, allow_pickle=["data.pkl"]) == 1
    told = capsys.readouterr().err
    assert "a is verified here, but its box could not be told: no room on the tier" in told
    monkeypatch.setattr(LocalSite, "ask", _answered_here)
    assert verify(refused.project) == 0
    assert _kept(refused)


def test_killed_between_any_two_steps_the_next_verify_tells_the_box(refused: FinishedRun) -> None:
    def work() -> None:
        verify(refused.project, allow_pickle=["data.pkl"])

    steps = steps_until_end(work, refused.root, die_at=10_000)
    assert steps and _kept(refused)
    receipt_, kept = refused.project.results.receipt, refused.site.tier.accepted("a")
    # The last steps: the receipt, what the box is told, and what lies between.
    for die_at in range(max(1, steps - 14), steps + 1):
        kept.unlink(missing_ok=True)
        receipt_.unlink(missing_ok=True)
        assert steps_until_end(work, refused.root, die_at) is None
        for path in (receipt_, kept):
            assert not path.exists() or json.loads(path.read_bytes()), "whole, or not there"
        assert not kept.exists() or receipt_.exists(), "the laptop's own proof comes first"
        again = () if receipt_.exists() else ("data.pkl",)
        assert verify(refused.project, allow_pickle=again) == 0
        assert _kept(refused)


def test_the_gate_takes_what_the_laptop_has_proven(refused: FinishedRun) -> None:
    verify(refused.project, allow_pickle=["data.pkl"])
    digest_ = _receipt(refused).digest
    assert down(refused.project, approve=digest_[:12]) == 0


# --- numbers that the job names


def test_the_numbers_that_the_job_names_are_taken_from_what_was_pulled_and_come_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, cells=("a", "b"))
    log = b"loss 0.1\nloss 0.75\nloss 0.25\n"
    run.publish("a", FILES | {"a.log": log, "s.csv": b"top1\n0.5\n"}, log_begins_at_bytes=9)
    run.publish("b", FILES | {"b.log": b"loss nan\n"})
    run.copy_here()
    metrics = (
        Metric("top1", "csv", "s.csv", key="top1"),
        Metric("loss", "log", "loss ([0-9.]+|nan)", best="min"),
    )
    named = replace(run.project, plan=replace(run.project.plan, metrics=metrics))
    assert verify(named) == 0
    told = capsys.readouterr()
    assert "top1 0.5, loss 0.25, psnr 31.25" in told.out and "top1 -, loss -, psnr" in told.out
    assert "b: top1 unknown: s.csv is not there" in told.err
    assert "b: loss unknown: the log: 'nan' is not a number" in told.err
    verdicts = {verdict.cell: verdict.metrics for verdict in _receipt(run).cells}
    assert verdicts["a"] == (Number("top1", 0.5), Number("loss", 0.25))
    with_them = _receipt(run).digest
    verify(run.project)
    assert _receipt(run).digest == with_them, "what is shown of a result does not change it"


def test_of_a_file_that_is_not_as_it_was_published_no_number_is_taken(tmp_path: Path) -> None:
    run = make_run(tmp_path, cells=("a",))
    run.publish("a", FILES | {"a.log": b"loss 0.5\n"})
    run.copy_here()
    run.here("a", "a.log").write_bytes(b"loss 0.1\n")
    metrics = (Metric("loss", "log", "loss ([0-9.]+)"),)
    assert verify(replace(run.project, plan=replace(run.project.plan, metrics=metrics))) == 1
    assert _receipt(run).cells[0].metrics == ()


CARRIED = {"wandb/run.wandb": b"log", "tb/events": b"12345"}


@pytest.fixture
def carrying(tmp_path: Path) -> FinishedRun:
    run = make_run(tmp_path)
    run.publish("a", carried=CARRIED)
    run.copy_here()
    return run


def test_what_is_carried_is_hashed_and_said_not_to_be_proven(
    carrying: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(carrying.project) == 0
    told = capsys.readouterr().err
    assert "2 unverified extra files (8 B) in 1 of 2 cells" in told
    assert "extra files left out (may hold a secret): in 1 cell; explain --cell CELL" in told
    assert {one.path for one in _receipt(carrying).cells[0].findings} == set(ARTIFACTS)
    cell = _said(carrying, capsys)["cells"][0]
    assert cell["carried"]["files"] == 2 and cell["files"] == len(FILES)


def test_while_the_tier_is_there_a_carried_file_that_is_missing_is_pulled_first(
    carrying: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    carrying.here("a", "tb/events").write_bytes(b"54321")
    said = _said(carrying, capsys)
    assert _rows(said) == [("a", "invoke pull")]
    assert "tb/events, an unverified extra file" in said["cells"][0]["missing"][0]["what"]
    assert said["cells"][0]["state"] == "damaged" and said["cells"][0]["carried"]["lacks"]


def test_once_the_tier_is_gone_a_carried_file_that_is_missing_costs_no_number(
    carrying: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(carrying.site.tier.root)
    carrying.here("a", "tb/events").unlink()
    found = _said(carrying, capsys)["cells"][0]
    assert found["missing"] == [] and found["metrics"]
    assert found["carried"]["lacks"] == ["tb/events"]
    verify(carrying.project)
    assert "1 extra file differs from what was published, or is missing" in capsys.readouterr().err
