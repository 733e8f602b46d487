from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from finished_run import FILES, FinishedRun, make_run

from boxcar.laptop.results import compare
from boxcar.laptop.results.judge import CellFacts
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.verbs.verify import cell_facts
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import digest
from boxcar.shared.files import journal

CELL = RosterCell("a", "q1")


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    """With a copy of its cells on the laptop, as a pull makes it."""
    run = make_run(tmp_path)
    run.copy_here()
    return run


def _look(run: FinishedRun) -> CellFacts:
    return compare.compare_folder(run.site, CELL)


def test_a_good_copy_is_whole_and_has_the_tiers_manifest(run: FinishedRun) -> None:
    facts = _look(run)
    assert facts.is_whole
    assert facts.manifest_sha256 == facts.tier_sha256
    assert facts.tier_sha256 == digest.of_bytes(run.site.tier.manifest("a").read_bytes())


def test_every_file_is_hashed_on_every_look(run: FinishedRun) -> None:
    sizes: list[int] = []
    compare.compare_folder(run.site, CELL, sizes.append)
    assert sorted(sizes) == sorted(len(data) for data in FILES.values())
    changed_at = run.here("a", "weights.dat").stat()
    run.flip_byte(run.here("a", "weights.dat"), 100)
    os.utime(run.here("a", "weights.dat"), ns=(changed_at.st_atime_ns, changed_at.st_mtime_ns))
    assert not _look(run).is_whole


def test_a_cell_without_any_copy_has_no_facts(run: FinishedRun) -> None:
    assert compare.compare_folder(run.site, RosterCell("z", "q1")) == CellFacts("z", "q1")


@pytest.mark.parametrize("where", ["cells", "cells/a", "cells/a/manifest.json"])
@pytest.mark.parametrize("side", ["tier", "results"])
def test_a_link_is_a_problem(run: FinishedRun, side: str, where: str, tmp_path: Path) -> None:
    path = getattr(run.site, side).root / where
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    facts = _look(run)
    assert "symbolic link" in (facts.problem or "") and not facts.is_whole


def test_a_hard_link_to_the_tier_is_no_copy(run: FinishedRun) -> None:
    here = run.project.results.manifest("a")
    here.unlink()
    os.link(run.site.tier.manifest("a"), here)
    assert "not a copy" in (_look(run).problem or "")


def test_the_manifest_of_another_cell_is_a_problem(run: FinishedRun) -> None:
    shutil.copy(run.project.results.manifest("b"), run.project.results.manifest("a"))
    assert "expected the manifest of tiny/a, found tiny/b" in (_look(run).problem or "")


def test_a_manifest_that_cannot_be_read_is_a_problem(run: FinishedRun) -> None:
    run.project.results.manifest("a").write_bytes(b"[]")
    assert "expected a JSON object" in (_look(run).problem or "")
    run.site.tier.manifest("b").unlink()
    run.site.tier.manifest("b").mkdir()
    assert compare.compare_folder(run.site, RosterCell("b", "q1")).problem


def test_a_manifest_that_leads_out_of_the_folder_is_a_problem(run: FinishedRun) -> None:
    path = run.project.results.manifest("a")
    path.write_bytes(path.read_bytes().replace(b"weights.dat", b"../../../x"))
    assert "leads out of" in (_look(run).problem or "")


def test_what_failed_is_known_from_the_journals(run: FinishedRun) -> None:
    log = journal.Journal(run.site.tier.journal("q1"), {"run": "tiny"})
    log.append("cell.failed", cell="b", attempt=1, failure="oom", reason="memory", release="r1")
    failed = look_at_run(run.site, timestamp.utc_now()).failed
    cells = [CELL, RosterCell("b", "q1")]
    assert [facts.has_failed for facts in compare.gather(run.site, cells, failed, {})] == [
        False,
        True,
    ]


def test_a_damaged_journal_hides_no_result(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.site.tier.journal("q1").write_bytes(b"nonsense\n")
    assert all(
        facts.is_whole for facts in cell_facts(run.site, look_at_run(run.site, timestamp.utc_now()))
    )
    assert "line 1 is damaged" in capsys.readouterr().err


def test_a_receipt_beside_the_files_is_no_difference(run: FinishedRun) -> None:
    run.here("a", paths.RECEIPT).write_bytes(b"{}")
    assert _look(run).is_whole


def test_a_receipt_that_is_damaged_on_the_tier_is_not_to_be_pulled_but_repaired(
    run: FinishedRun,
) -> None:
    run.here("a", paths.RECEIPT).write_bytes(b"{}")
    run.site.tier.receipt("a").write_bytes(b"nonsense")
    (row,) = compare.beside_the_manifests(run.site, [CELL])
    assert str(row.command) == "invoke repair" and "receipt on the tier is damaged" in row.what
