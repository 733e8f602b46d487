"""One bad item hides no other: in each place of a run that is gone through, one that is cut off, is
noise, is a folder, or leads nowhere is planted, and all else is looked at, pulled and verified.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun, make_run
from run_on_disk import agent_started, cell_started, cell_verified

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project import launches
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.mixed_code import without_config
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.split import measured
from boxcar.laptop.verbs.verify import verify
from boxcar.laptop.verbs.watch import pull_new
from boxcar.laptop.view.report import gather
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared import timestamp
from boxcar.shared.disk import digest
from boxcar.shared.files import receipt
from boxcar.shared.files.release import Code, Release

RELEASE = "ab" * 32


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50] if path.is_file() else b"{")


def noise(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00[[[[")


def as_a_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    (path / "deep").mkdir(parents=True)


def as_a_circle(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def as_a_link_that_may_not_be_followed(path: Path) -> None:
    """As in a folder that may not be looked at: also to ask whether it is there is an error."""
    path.unlink(missing_ok=True)
    path.symlink_to("x" * 300)


SPOILS = (cut, noise, as_a_folder, as_a_circle)


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    """Cells a, b and c are verified on q1, and lie here."""
    run: FinishedRun = make_run(tmp_path, ("a", "b", "c"))
    type_, about = agent_started()
    run.say("q1", (type_, about | {"box": "box-a"}))
    for cell in ("a", "b", "c"):
        sha256 = digest.of_file(run.site.tier.manifest(cell))
        run.say("q1", cell_started(cell), cell_verified(cell, sha256))
    run.copy_here()
    return run


def of_the_tier(run: FinishedRun) -> dict[str, Path]:
    tier = run.site.tier
    return {
        "manifest": tier.manifest("a"),
        "receipt": tier.receipt("a"),
        "claim": tier.claim("a"),
        "accepted": tier.accepted("a"),
        "journal": tier.journal("q2"),
        "heartbeat": tier.heartbeat("q1"),
        "control": tier.control("q1"),
        "delivered": tier.delivered("q1"),
        "queue": tier.queue("q2"),
        "release": tier.release(RELEASE) / "release.json",
        "plan": tier.release(RELEASE) / "plan.json",
        "pointer": tier.resume("a") / "resume.json",
        "artifact": tier.cell("a") / "weights.dat",
    }


def of_the_results(run: FinishedRun) -> dict[str, Path]:
    results = run.project.results
    return {
        "pulled manifest": results.manifest("a"),
        "pulled receipt": results.cell("a") / "receipt.json",
        "pulled artifact": results.cell("a") / "weights.dat",
        "pulled journal": results.journals / "q2.jsonl",
        "pulled pointer": results.resume_pointer("a"),
        "second home": results.root / "second.json",
        "moves": results.root / "moves.json",
        "launches": results.root / launches.LAUNCHES,
        "hashed": run.root / ".boxcar" / "hashed" / "tiny.json",
    }


NAMES = [
    *("manifest", "receipt", "claim", "accepted", "journal", "heartbeat", "control", "delivered"),
    *("queue", "release", "plan", "pointer", "artifact"),
    *("pulled manifest", "pulled receipt", "pulled artifact", "pulled journal", "pulled pointer"),
    *("second home", "moves", "launches", "hashed"),
]


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("name", NAMES)
def test_the_other_cells_are_looked_at_and_pulled(run, name, spoil) -> None:
    path = (of_the_tier(run) | of_the_results(run))[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    spoil(path)
    assert _words(run) >= {("b", "verified"), ("c", "verified")}
    shutil.rmtree(run.project.results.cell("b"))
    pull(run.project)
    assert run.project.results.manifest("b").exists()


@pytest.mark.parametrize("spoil", [cut, as_a_folder])
@pytest.mark.parametrize("name", ["manifest", "accepted", "pulled manifest", "pulled artifact"])
def test_the_other_cells_are_verified(run, name, spoil) -> None:
    spoil((of_the_tier(run) | of_the_results(run))[name])
    verify(run.project)
    made = receipt.read_run(run.project.results.receipt)
    assert {cell.cell for cell in made.cells if cell.is_settled} >= {"b", "c"}
    report = gather.report_of(run.project, Asked(("tiny",)))
    assert report.tables


def _words(run: FinishedRun) -> set[tuple[str, str]]:
    return {(cell.name, cell.word) for cell in look_at_run(run.site, timestamp.utc_now()).cells}


@pytest.mark.parametrize("spoil", [as_a_folder, as_a_circle, as_a_link_that_may_not_be_followed])
def test_a_receipt_that_cannot_be_read_ends_no_watch(run, spoil: Callable[[Path], None]) -> None:
    view = look_at_run(run.site, timestamp.utc_now())
    shutil.rmtree(run.project.results.cell("b"))
    run.site.tier.receipt("b").write_bytes(b"{}")
    spoil(run.site.tier.receipt("a"))
    pull_new(run.site, view)


def rubbish(path: Path) -> None:
    path.write_bytes(b"rubbish\n")


@pytest.mark.parametrize("spoil", [rubbish, as_a_folder, as_a_circle])
def test_of_earlier_runs_one_bad_journal_is_named_and_the_others_are_measured(
    run, spoil: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(measured(run.project))
    other = run.root / "results" / "earlier" / "journal" / "q.jsonl"
    other.parent.mkdir(parents=True)
    spoil(other)
    assert len(measured(run.project)) == before
    assert str(other) in capsys.readouterr().err


@pytest.mark.parametrize("spoil", SPOILS)
def test_one_bad_release_hides_no_line_without_a_config(run, spoil: Callable[[Path], None]) -> None:
    path = run.site.tier.release(RELEASE) / "release.json"
    path.parent.mkdir(parents=True)
    spoil(path)
    run.write_queue("q1", "configs/gone.yaml recon 3\n")
    made = Release("tiny", "o.pyz", "t.zip", Code(None, False), ())
    assert without_config(run.site.tier, ["q1"], made) == {"q1": ["line 1: configs/gone.yaml"]}


def test_a_lock_that_cannot_be_asked_hides_nothing(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError(40, "Too many levels of symbolic links", "a.log")

    run.say("q1", cell_started("a", 2))
    monkeypatch.setattr(LocalSite, "is_attempt_alive", broken)
    view = look_at_run(run.site, timestamp.utc_now())
    assert "a.log" in " ".join(view.queue("q1").problems)
    assert ("b", "verified") in {(cell.name, cell.word) for cell in view.cells}
