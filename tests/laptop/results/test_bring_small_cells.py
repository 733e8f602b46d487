from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from finished_run import FILES, RUN, FinishedRun, make_run

from boxcar.laptop.common.progress import Progress
from boxcar.laptop.hosts import by_rsync, folders
from boxcar.laptop.results import bring_cell, results_folder
from boxcar.laptop.results.bring_cell import Published, Terms, read_published
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.pull_cells import pull_cells
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, tree_sync
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.receipt import CellReceipt

pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")
NAMES = [f"c{number}" for number in range(6)]


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    made = make_run(tmp_path)
    for name in NAMES:
        made.publish(name, FILES | {"log.txt": name.encode()})
    return made


@pytest.fixture
def held(run: FinishedRun) -> Iterator[int]:
    with results_folder.hold(run.site) as fd:
        yield fd


def wanted(run: FinishedRun) -> list[Published]:
    found = [read_published(run.site, name) for name in NAMES]
    return [one for one in found if one]


def test_cells_of_one_place_come_together_and_each_is_right(run: FinishedRun, held: int) -> None:
    [portion] = bring_cell.portions_of_cells(run.site, wanted(run))
    counts: list[int] = []
    assert bring_cell.fetch_small_cells(run.site, portion, Terms(held), counts.append) == set(NAMES)
    with TreeSync(run.project.results.root) as sync:
        placed = bring_cell.keep_small_cells(run.site, portion.cells, sync)
    assert placed == dict.fromkeys(NAMES)
    for name in NAMES:
        here = run.project.results.cell(name)
        assert (here / "log.txt").read_bytes() == name.encode()
        assert (here / paths.MANIFEST).read_bytes() == run.site.tier.manifest(name).read_bytes()


def test_the_receipts_of_the_boxes_come_with_them_and_wait_for_nothing(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        sha256 = manifest.sha256(run.site.tier.manifest(name))
        made = CellReceipt(RUN, name, 1, sha256, "2026-11-20T10:00:00.000Z", ())
        run.site.tier.receipt(name).write_bytes(codec.to_document(made))
    left = run.project.results.partial / "a" / paths.RECEIPT
    left.parent.mkdir(parents=True)
    left.write_text("of another result")
    written: list[Path] = []
    write_whole = atomic.write_whole
    monkeypatch.setattr(
        atomic,
        "write_whole",
        lambda path, data, **o: (written.append(path), write_whole(path, data)),
    )
    pull(run.project)
    assert not [path for path in written if path.name == paths.RECEIPT]
    for name in ("a", "b"):
        there = run.site.tier.receipt(name).read_bytes()
        assert run.here(name, paths.RECEIPT).read_bytes() == there


def test_a_large_cell_and_one_that_is_alone_come_by_themselves(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bring_cell.portions_of_cells(run.site, wanted(run)[:1]) == []
    monkeypatch.setattr(bring_cell, "SMALL_BYTES", 10)
    assert bring_cell.portions_of_cells(run.site, wanted(run)) == []


def test_what_is_too_much_at_once_comes_in_portions(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bring_cell, "_MOST_CELLS", 2)
    found = bring_cell.portions_of_cells(run.site, wanted(run))
    assert [len(portion.cells) for portion in found] == [2, 2, 2]
    assert [cell.cell for portion in found for cell in portion.cells] == NAMES


@pytest.mark.parametrize("name", list(FILES))
def test_a_flipped_byte_in_one_cell_keeps_that_one_away_and_no_other(
    run: FinishedRun, held: int, name: str
) -> None:
    run.flip_byte(run.site.tier.cell("c3") / name, 3)
    [portion] = bring_cell.portions_of_cells(run.site, wanted(run))
    came = bring_cell.fetch_small_cells(run.site, portion, Terms(held), lambda _: None)
    assert came == set(NAMES) - {"c3"}


def test_a_link_on_the_tier_is_brought_by_nobody(run: FinishedRun, held: int) -> None:
    folder = run.site.tier.cell("c2")
    (folder / "log.txt").rename(run.root / "elsewhere")
    (folder / "log.txt").symlink_to(run.root / "elsewhere")
    [portion] = bring_cell.portions_of_cells(run.site, wanted(run))
    assert bring_cell.fetch_small_cells(run.site, portion, Terms(held), lambda _: None) == set()


def test_a_pull_asks_each_place_once_and_waits_for_the_disk_once(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, waits = [], []
    run_rsync, sync = by_rsync.run_rsync, tree_sync._sync_file_system
    monkeypatch.setattr(tree_sync, "has_one_sync", lambda _folder: True)
    monkeypatch.setattr(tree_sync, "is_quiet", lambda _size_bytes: True)
    monkeypatch.setattr(
        tree_sync, "_sync_file_system", lambda fd, at: (waits.append(at), sync(fd, at))
    )
    monkeypatch.setattr(
        folders.by_rsync, "run_rsync", lambda *a, **o: (asked.append(1), run_rsync(*a, **o))[1]
    )
    for name in NAMES:
        run.site.tier.cell(name).rename(run.root / name)
    pull(run.project)  # the two that the run has
    assert len(asked) == 1 and len(waits) == 1
    assert sorted(path.name for path in run.project.results.cells.iterdir()) == [
        "a",
        "b",
    ]


def test_a_pull_that_was_killed_after_the_fetch_ends_right(run: FinishedRun, held: int) -> None:
    [portion] = bring_cell.portions_of_cells(run.site, wanted(run))
    bring_cell.fetch_small_cells(run.site, portion, Terms(held), lambda _: None)
    # A byte of what had come was lost meanwhile: rsync believes its size and time.
    left = run.project.results.partial / "c1" / "weights.dat"
    times = (left.stat().st_atime_ns, left.stat().st_mtime_ns)
    run.flip_byte(left, 5)
    os.utime(left, ns=times)
    came = bring_cell.fetch_small_cells(run.site, portion, Terms(held), lambda _: None)
    assert came == set(NAMES) - {"c1"}


def test_cells_whose_portion_was_cut_off_are_counted_once(
    run: FinishedRun, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line said 24 MB of 32 MB where there were 16, and gave what had not come for done."""
    monkeypatch.setattr(bring_cell, "fetch_small_cells", lambda *_: set())
    bar = Progress("pull")
    view = look_at_run(run.site, timestamp.utc_now())
    cells = [cell for cell in view.roster.cells if cell.name in NAMES]
    outcomes = pull_cells(run.site, view, cells, held, bar)
    assert [one.word for one in outcomes] == ["pulled"] * len(NAMES)
    assert bar.total == bar.done == sum(one.manifest.size_bytes for one in wanted(run))
