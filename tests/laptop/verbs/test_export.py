"""The verb, with a tracker that writes a line; the real ones have tests of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_run import FILES, FinishedRun, make_run
from run_on_disk import cell_failed, cell_started

from boxcar.laptop.trackers import tracker
from boxcar.laptop.trackers.exported_cell import ExportedCell
from boxcar.laptop.verbs.export import export
from boxcar.laptop.verbs.verify import verify
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared.errors import InputError, TemporaryError

ASKED = Asked(("tiny",))
PROGRESS = b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": null, "nonfinite": ["loss"]}\n'


class Lines:
    def write(self, folder: Path, cell: ExportedCell) -> str:
        (folder / cell.name).write_text(f"{cell.config} {cell.points} {cell.numbers}")
        return cell.name


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedRun:
    """Cells a and b, proven, with progress, and c, which failed."""
    monkeypatch.setattr(tracker, "load", lambda name: Lines())
    run: FinishedRun = make_run(tmp_path)
    for cell, lr in (("a", "0.1"), ("b", "0.2")):
        run.publish(cell, files=FILES | {"progress.jsonl": PROGRESS}, config=f"lr: {lr}\n")
    run.say("q1", cell_started("c"), cell_failed("c"))
    run.copy_here()
    verify(run.project)
    return run


def document(run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    export(run.project, ASKED, to="wandb", as_json=True)
    return dict(json.loads(capsys.readouterr().out))


def states(run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {cell["cell"]: cell["state"] for cell in document(run, capsys)["cells"]}


def test_what_is_proven_is_exported_and_the_rest_is_named(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert export(run.project, ASKED, to="wandb") == 1
    said = capsys.readouterr()
    folder = run.project.results.root / "export/wandb"
    assert f"{folder}: 2 added, 0 changed, 0 unchanged" in said.out
    assert "c left out: failed" in said.err
    assert f"nothing was uploaded. Next: wandb sync {folder}/wandb/offline-run-*" in said.err
    text = (folder / "a").read_text()
    assert "'lr': 0.1" in text and "nan" in text and "'psnr': 31.25" in text
    incomplete = replace(ASKED, is_incomplete_shown=True)
    assert export(run.project, incomplete, to="wandb") == 0


def test_a_second_export_says_that_nothing_changed_and_needs_no_library(
    run: FinishedRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    export(run.project, ASKED, to="wandb")
    folder = run.project.results.root / "export"
    before = run.snapshot(folder)
    monkeypatch.setattr(tracker, "load", None)
    capsys.readouterr()
    export(run.project, ASKED, to="wandb")
    assert "nothing changed: " in capsys.readouterr().out
    assert run.snapshot(folder) == before


def test_a_cell_that_was_trained_again_is_said_and_no_other_is_touched(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    document(run, capsys)
    ids = {cell["cell"]: cell["id"] for cell in document(run, capsys)["cells"]}
    run.publish("b", files=FILES | {"metrics.json": b'{"psnr": 32.0}'}, config="lr: 0.2\n")
    for name in ("metrics.json", "manifest.json"):
        run.here("b", name).write_bytes((run.site.tier.cell("b") / name).read_bytes())
    run.here("b", "progress.jsonl").unlink()
    verify(run.project)
    found = document(run, capsys)["cells"]
    assert {one["cell"]: one["state"] for one in found} == {
        "a": "unchanged",
        "b": "changed",
        "c": "left out",
    }
    assert {one["cell"]: one["id"] for one in found} == ids


def test_progress_that_is_not_as_it_was_published_is_no_curve(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.here("a", "progress.jsonl").write_bytes(PROGRESS + b'{"step": 3, "loss": 0.0}\n')
    assert states(run, capsys) == {"a": "left out", "b": "added", "c": "left out"}


def test_curves_of_carried_files_are_exported_as_far_as_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the teardown a person may remove what is only carried."""
    monkeypatch.setattr(tracker, "load", lambda name: Lines())
    run: FinishedRun = make_run(tmp_path)
    csv = b"epoch,val_loss\n1,0.5\n2,0.25\n"
    for cell in "ab":
        run.publish(cell, carried={"csv/metrics.csv": csv})
    run.copy_here()
    verify(run.project)
    run.here("b", "csv/metrics.csv").unlink()
    assert states(run, capsys) == {"a": "added", "b": "added"}
    folder = run.project.results.root / "export/wandb"
    assert "'val_loss': 0.25" in (folder / "a").read_text()
    assert "val_loss" not in (folder / "b").read_text()


def test_what_was_exported_and_is_proven_no_more_is_said(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    export(run.project, ASKED, to="wandb")
    run.here("a", "manifest.json").unlink()
    capsys.readouterr()
    assert export(run.project, ASKED, to="wandb") == 1
    said = capsys.readouterr().err
    assert "a left out: differs from the receipt" in said
    assert "a: the export from when it was verified is still in" in said


def test_nothing_is_exported_before_something_is_verified_nor_to_what_does_not_exist(
    tmp_path: Path, run: FinishedRun
) -> None:
    with pytest.raises(InputError, match="name one with --to: tensorboard, wandb"):
        export(run.project, ASKED, to="")
    run.project.results.receipt.unlink()
    with pytest.raises(InputError, match="nothing is verified yet"):
        export(run.project, ASKED, to="wandb")


def test_the_folder_may_be_named_and_two_exports_do_not_meet_in_it(
    run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "elsewhere"

    class Again(Lines):
        def write(self, folder: Path, cell: ExportedCell) -> str:
            with pytest.raises(TemporaryError, match="another export is running there"):
                export(run.project, ASKED, to="wandb", out=str(out))
            return super().write(folder, cell)

    monkeypatch.setattr(tracker, "load", lambda name: Again())
    export(run.project, ASKED, to="wandb", out=str(out))
    assert (out / "a").exists() and not (run.project.results.root / "export").exists()


def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(
    run: FinishedRun, tmp_path: Path
) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "thesis.tex").touch()
    with pytest.raises(InputError, match="expected an empty folder"):
        export(run.project, ASKED, to="wandb", out=str(out))
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


def test_where_nothing_is_proven_nothing_is_said_to_be_there(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    for cell in "ab":
        run.here(cell, "manifest.json").unlink()
    capsys.readouterr()
    assert export(run.project, ASKED, to="wandb") == 1
    said = capsys.readouterr()
    assert said.out == "" and "b left out" in said.err and "Next" not in said.err
