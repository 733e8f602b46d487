from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from finished_run import FILES, FinishedRun, make_run

from boxcar.laptop.hosts import by_rsync, folders
from boxcar.laptop.results import bring_cell, results_folder
from boxcar.laptop.results.bring_cell import Terms, fetch_cell, read_published
from boxcar.shared import paths
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import codec
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume

pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return make_run(tmp_path, cells=("a",))


def _fetch(run: FinishedRun) -> Path | None:
    published = read_published(run.site, "a")
    assert published
    with results_folder.hold(run.site) as held:
        return fetch_cell(run.site, published, Terms(held), lambda size_bytes: None)


def _is_right(run: FinishedRun) -> bool:
    wanted = FILES | {paths.MANIFEST: run.site.tier.manifest("a").read_bytes()}
    return run.snapshot(run.project.results.cell("a")) == wanted


def test_a_cell_comes_whole_and_leaves_nothing_behind(run: FinishedRun) -> None:
    assert _fetch(run) is None
    assert _is_right(run)
    assert not list(run.project.results.partial.iterdir())


def test_what_was_there_is_kept(run: FinishedRun) -> None:
    _fetch(run)
    run.flip_byte(run.here("a", "weights.dat"), 5)
    damaged = run.here("a", "weights.dat").read_bytes()
    aside = _fetch(run)
    assert aside and (aside / "weights.dat").read_bytes() == damaged
    assert _is_right(run)


def test_nothing_is_published_without_a_manifest(run: FinishedRun) -> None:
    run.site.tier.manifest("a").unlink()
    assert read_published(run.site, "a") is None


def test_a_damaged_leftover_of_the_same_size_and_time_is_not_believed(run: FinishedRun) -> None:
    source, left = run.site.tier.cell("a"), run.project.results.partial / "a"
    left.mkdir(parents=True)
    for name in (*FILES, paths.MANIFEST):
        shutil.copy2(source / name, left / name)
        changed_at = (left / name).stat()
        run.flip_byte(left / name, 11)
        os.utime(left / name, ns=(changed_at.st_atime_ns, changed_at.st_mtime_ns))
    _fetch(run)
    assert _is_right(run)


def test_a_leftover_of_another_result_is_not_mixed_in(run: FinishedRun) -> None:
    left = run.project.results.partial / "a"
    (left / "sub").mkdir(parents=True)
    (left / "old.pth").write_bytes(b"of an earlier result")
    (left / "sub" / "old.pth").write_bytes(b"of an earlier result")
    _fetch(run)
    assert _is_right(run)
    assert not (run.project.results.cell("a") / "sub").exists()


def test_what_was_published_again_under_way_is_not_taken(run: FinishedRun) -> None:
    published = read_published(run.site, "a")
    assert published
    run.publish("a", attempt=2)
    with (
        results_folder.hold(run.site) as held,
        pytest.raises(DamagedError, match=r"manifest\.json was replaced meanwhile"),
    ):
        fetch_cell(run.site, published, Terms(held), lambda size_bytes: None)
    assert not run.project.results.cell("a").exists()


def test_a_disk_without_room_gets_nothing(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bring_cell.checked_copy, "SPARE_BYTES", 1 << 60)
    with pytest.raises(NoRoomError):
        _fetch(run)
    assert not run.project.results.cell("a").exists()


@pytest.mark.parametrize("what", ["file", "folder", "cell", "cells"])
def test_links_on_the_tier_are_refused(run: FinishedRun, what: str) -> None:
    tier = run.site.tier
    run.publish("a", {"sub/weights.dat": b"x"})
    link = {
        "file": tier.cell("a") / "sub/weights.dat",
        "folder": tier.cell("a") / "sub",
        "cell": tier.cell("a"),
        "cells": tier.cells,
    }[what]
    link.rename(run.root / "elsewhere")
    link.symlink_to(run.root / "elsewhere")
    with pytest.raises(DamagedError, match="symbolic link"):
        _fetch(run)
    assert not run.project.results.cell("a").exists()


@pytest.mark.parametrize("what", ["cells", ".partial"])
def test_a_linked_folder_in_the_results_is_refused(run: FinishedRun, what: str) -> None:
    elsewhere = run.root / "elsewhere"
    elsewhere.mkdir()
    run.project.results.root.mkdir(parents=True)
    (run.project.results.root / what).symlink_to(elsewhere)
    with pytest.raises(DamagedError, match="symbolic link"):
        _fetch(run)
    assert not list(elsewhere.iterdir())


def test_a_link_to_the_tier_is_replaced_by_a_copy(run: FinishedRun) -> None:
    here = run.project.results.cell("a")
    here.parent.mkdir(parents=True)
    here.symlink_to(run.site.tier.cell("a"))
    _fetch(run)
    assert not here.is_symlink() and _is_right(run)


def test_what_is_dear_to_look_at_is_looked_at_seldom(monkeypatch):
    clock, looks = [0.0], []

    def look():
        looks.append(clock[0])
        clock[0] += 0.1

    monkeypatch.setattr(bring_cell.time, "monotonic", lambda: clock[0])
    look_if_due = bring_cell.seldom(look)
    while clock[0] < 20:
        look_if_due()
        clock[0] += 0.2
    assert 3 <= len(looks) <= 4


def _asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are asked of the box."""
    asked: list[str] = []
    fetch = folders.fetch_folder
    monkeypatch.setattr(
        folders,
        "fetch_folder",
        lambda *words, files, **more: (asked.extend(files), fetch(*words, files=files, **more)),
    )
    return asked


def test_what_an_older_copy_has_is_not_asked_for(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fetch(run)
    run.publish("a", FILES | {"metrics.json": b"{}"}, attempt=2)
    asked = _asked(monkeypatch)
    aside = _fetch(run)
    assert asked == ["metrics.json", paths.MANIFEST]
    assert run.here("a", "metrics.json").read_bytes() == b"{}"
    assert run.here("a", "weights.dat").read_bytes() == FILES["weights.dat"]
    assert aside and not (aside / "weights.dat").samefile(run.here("a", "weights.dat"))


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_checkpoint_that_watch_has_brought_is_not_asked_for_again(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    data = FILES["weights.dat"]
    file = FileRecord("latest.pth", len(data), digest.of_bytes(data))
    results = run.project.results
    results.resume("a").mkdir(parents=True)
    (results.resume("a") / "latest.pth").write_bytes(data[::-1] if is_damaged else data)
    pointer = Resume("a", 1, "2026-11-28T10:00:00.000Z", "latest.pth", file)
    results.resume_pointer("a").write_bytes(codec.to_document(pointer))
    asked = _asked(monkeypatch)
    _fetch(run)
    assert ("weights.dat" in asked) is is_damaged
    assert _is_right(run)


def test_one_wrong_file_is_asked_for_again_and_the_others_stay(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, left = run.site.tier.cell("a"), run.project.results.partial / "a"
    left.mkdir(parents=True)
    for name in FILES:
        shutil.copy2(source / name, left / name)
    times = (left / "metrics.json").stat()
    run.flip_byte(left / "metrics.json", 1)
    os.utime(left / "metrics.json", ns=(times.st_atime_ns, times.st_mtime_ns))
    kept = (left / "weights.dat").stat().st_ino
    _fetch(run)
    assert _is_right(run)
    assert run.here("a", "weights.dat").stat().st_ino == kept


def test_what_was_here_before_is_not_told_as_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bring_cell, "seldom", lambda look: look)
    partial = tmp_path / "partial"
    (partial / by_rsync.PARTIAL).mkdir(parents=True)
    (partial / by_rsync.PARTIAL / "big").write_bytes(bytes(600))
    told: list[int] = []
    look = bring_cell._look_on(tmp_path, [partial], 1000, Terms(0), told.append)
    for size_bytes in (10, 500, 700, 1000):
        (partial / ".big.Xy12Zz").write_bytes(
            bytes(size_bytes)
        )  # an old rsync copies the 600 first
        look()
    assert told == [0, 0, 100, 400]
    (partial / ".big.Xy12Zz").unlink()
    (partial / by_rsync.PARTIAL / "big").write_bytes(bytes(900))  # a newer one goes on there
    look()
    assert told[-1] == 300


CARRIED = {"wandb/run.wandb": b"log", "tb/events.1": b"events"}


def test_what_is_carried_comes_along(run: FinishedRun) -> None:
    run.publish("a", carried=CARRIED)
    _fetch(run)
    wanted = FILES | CARRIED | {paths.MANIFEST: run.site.tier.manifest("a").read_bytes()}
    assert run.snapshot(run.project.results.cell("a")) == wanted


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_carried_file_that_does_not_come_right_costs_no_result(
    run: FinishedRun, is_lost: bool
) -> None:
    run.publish("a", carried=CARRIED)
    bad = run.site.tier.cell("a") / "wandb/run.wandb"
    bad.unlink() if is_lost else run.flip_byte(bad, 1)
    _fetch(run)
    came = run.snapshot(run.project.results.cell("a"))
    assert {*came} == {*FILES, paths.MANIFEST, "tb/events.1"}
