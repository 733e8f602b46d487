"""The verb: a report of real results."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import report_cells
from finished_run import FILES, FinishedRun, make_run
from run_on_disk import cell_failed, cell_started

from boxcar.laptop.project.job import ReportWords
from boxcar.laptop.project.project import Project
from boxcar.laptop.verbs.report import asked_of, report
from boxcar.laptop.verbs.verify import verify
from boxcar.laptop.view.report import gather, report_page
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared import state
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, receipt

ASKED = Asked(("tiny",))


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    """Cells a and b, which differ in their config, and c, which failed."""
    run: FinishedRun = make_run(tmp_path)
    for cell, lr in (("a", "0.1"), ("b", "0.2")):
        run.publish(cell, config=f"lr: {lr}\n")
    run.say("q1", cell_started("c"), cell_failed("c"))
    run.copy_here()
    verify(run.project)
    return run


def document(run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert report(run.project, ASKED, as_json=True) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_table_shows_what_verify_has_proven_and_why_the_rest_is_missing(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert report(run.project, ASKED) == 0
    said = capsys.readouterr()
    assert "31.25" in said.out and "lr: 0.1→0.2" in said.out
    assert "c has no number: failed" in said.err


def test_a_metric_that_no_cell_has_is_refused_with_the_nearest_one(run: FinishedRun) -> None:
    with pytest.raises(InputError, match=r"has no metric 'pnsr' \(did you mean 'psnr'\?\)"):
        report(run.project, replace(ASKED, metrics=("pnsr",)))


def test_the_page_has_the_whole_curve_of_a_number_that_a_library_wrote(tmp_path: Path) -> None:
    run: FinishedRun = make_run(tmp_path)
    rows = b"".join(b"%d,%d.5\n" % (n, n) for n in range(1, 31))
    for cell in "ab":
        run.publish(cell, files=FILES | {"metrics.csv": b"epoch,val_loss\n" + rows})
    run.copy_here()
    verify(run.project)
    page = (run.project.results.root / "report.html").read_text()
    assert "val_loss" in page and "30.5 @ 30" in page and "1.5 @ 1" in page


def test_verify_writes_the_page_and_names_it(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    verify(run.project)
    page = run.project.results.root / "report.html"
    assert str(page) in capsys.readouterr().err
    assert "31.25" in page.read_text(encoding="utf-8")
    page.unlink()
    verify(run.project, as_json=True)
    assert page.exists()


def test_nothing_is_reported_before_something_is_verified(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.copy_here()
    with pytest.raises(InputError, match="nothing is verified yet"):
        report(run.project, ASKED)


def test_a_result_that_changed_since_the_receipt_enters_no_number(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.flip_byte(run.here("a", "manifest.json"), 60)
    text = json.dumps(document(run, capsys))
    assert "differs from the receipt" in text and text.count('"psnr": 31.25') == 1


def test_latex_ends_with_one_where_a_group_is_left_out(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert report(run.project, ASKED, to="latex") == 1
    assert "--incomplete" in capsys.readouterr().err
    assert report(run.project, replace(ASKED, is_incomplete_shown=True), to="latex") == 0


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("language", ["en_US.UTF-8", "zh_CN.UTF-8"])
def test_on_a_terminal_each_number_is_whole_and_the_best_is_bold(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, width: int, language: str
) -> None:
    values = {"ablation_without_skip_connection": 0.8, "ablation_with_skip_connection": -0.2}
    cells = [
        replace(
            report_cells.cell(name, seed, 0.5, skip=name),
            numbers={"acc": value + seed / 700, "dice": 2 * (value + seed / 700)},
        )
        for name, value in values.items()
        for seed in range(3)
    ]
    made = report_cells.made(cells, best={"acc": "max", "dice": "max"}, metrics=("acc", "dice"))
    monkeypatch.setattr(gather, "report_of", lambda *_: made)
    monkeypatch.setattr(report_page, "write_page", lambda *_: "report.html")
    for name in ("NO_COLOR", "LC_ALL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("TERM", "xterm"), ("COLUMNS", str(width)), ("LANG", language)):
        monkeypatch.setenv(name, value)
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout", terminal)
    report(run.project, ASKED)
    shown = terminal.getvalue()
    assert "\x1b[1m0.8014±0.0014 ★\x1b[0m" in shown
    numbers = {text for row in made.tables[0].rows for text in (*row.numbers, *row.deltas)}
    whole = {word for text in numbers for word in text.split() if "±" in word}
    assert "-1.0000±0.0032" in whole
    assert {word for word in re.findall(r"[^\s\x1b]+", shown) if "±" in word} <= {
        *whole,
        *(f"[1m{word}" for word in whole),
    }


def train_again(run: FinishedRun, cell: str) -> None:
    """Another result of the same cell, pulled and verified."""
    run.publish(cell, FILES | {"metrics.json": b'{"psnr": 30.0}'}, config="lr: 0.2\n")
    for name in ("metrics.json", "manifest.json"):
        run.here(cell, name).write_bytes((run.site.tier.cell(cell) / name).read_bytes())
    verify(run.project)


def test_two_runs_stand_in_one_table_unless_a_name_means_two_numbers(run: FinishedRun) -> None:
    results = run.project.results
    other = replace(results, run="other")
    other.root.mkdir(parents=True)
    found = receipt.read_run(results.receipt)
    known = {"name": "psnr", "source": "json", "of": "metrics.json", "key": "psnr", "best": None}

    def write(folder: Path, name: str, metric: dict[str, Any]) -> None:
        made = replace(found, run=name, extra={"metrics": [metric]})
        (folder / "receipt.json").write_bytes(codec.to_document(made))

    write(results.root, "tiny", known)
    write(other.root, "other", known)
    assert report(run.project, Asked(("tiny", "other"))) == 0
    write(other.root, "other", known | {"key": "psnr_y"})
    with pytest.raises(InputError, match="psnr is defined differently in tiny and other"):
        report(run.project, Asked(("tiny", "other")))


@pytest.mark.parametrize("name", ["../tiny", "/etc", "a b", "", "other"])
def test_a_run_is_a_name_whose_results_are_here(run: FinishedRun, name: str) -> None:
    with pytest.raises(InputError, match=r"is not a run whose results are in .*; there are: tiny"):
        report(run.project, Asked((name,)))


def test_the_line_that_is_said_for_a_path_brings_its_run_here(
    run: FinishedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "their runs" / "theirs"
    shutil.copytree(run.project.results.root, other)
    with pytest.raises(InputError) as said:
        report(run.project, Asked(("tiny", str(other))))
    [line, name] = re.findall(r"(ln -s .*), then give --run (\S+)", str(said.value))[0]
    subprocess.run(line, shell=True, check=True)
    made = receipt.read_run(other / "receipt.json")
    (other / "receipt.json").write_bytes(codec.to_document(replace(made, run=name)))
    capsys.readouterr()
    assert report(run.project, Asked(("tiny", name))) == 0
    assert "tiny, theirs" in capsys.readouterr().out


def test_a_number_that_no_cell_has_is_refused_where_it_was_typed(run: FinishedRun) -> None:
    with pytest.raises(InputError, match=r"no metric 'snr'.*it has: psnr"):
        report(run.project, replace(ASKED, metrics=("snr",)))
    project = reads(run, {"psnr": "max", "dice": "max"})
    assert report(project, asked_of(project, (), Asked(()))) == 0, "another task's"


def reads(run: FinishedRun, metric: Any) -> Project:
    words = ReportWords(metric=metric)
    return replace(run.project, job=SimpleNamespace(**vars(run.project.job) | {"report": words}))


def test_the_job_says_of_a_number_what_is_best(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    train_again(run, "b")
    project = reads(run, {"psnr": "min"})
    asked = asked_of(project, (), Asked(()))
    capsys.readouterr()
    report(project, asked)
    shown = capsys.readouterr().out
    assert "psnr ↓" in shown and "30 ★" in shown and "-1.2 better" in shown
    report(project, asked, to="md")
    assert '"best":{"psnr":"min"}' in capsys.readouterr().out
    assert reads(run, ["psnr"]).job.report == reads(run, "psnr").job.report


def test_a_kind_that_does_not_exist_is_named_with_those_that_do(run: FinishedRun) -> None:
    with pytest.raises(InputError, match="expected html, md, latex, csv, json, found 'pdf'"):
        report(run.project, ASKED, to="pdf")


def test_of_a_cell_that_two_boxes_began_the_one_with_the_result_is_told() -> None:
    done = state.CellRecord(state.Verified(1, "", "ab" * 32), attempts=1)
    killed = state.CellRecord(state.Running(2, ""), attempts=2)
    assert gather._later(done, killed) is done and gather._later(killed, done) is done
    assert gather._later(done, replace(done, attempts=2)).attempts == 2
