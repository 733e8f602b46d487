from __future__ import annotations

import os
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.hosts import folders
from boxcar.laptop.results import results_folder
from boxcar.shared.disk import lock
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import Teardown


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    run = make_run(tmp_path)
    run.project.results.root.mkdir(parents=True)
    return run


def _write_teardown(run: FinishedRun, finished_at: str | None) -> None:
    made = Teardown("tiny", "0" * 64, "remove", "then", "typed", finished_at)
    run.project.results.teardown.write_bytes(codec.to_document(made))
    run.project.results.receipt.write_bytes(b"of the first life")


def test_only_one_holds_the_results(run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_folder, "WAIT_S", 0.0)
    with results_folder.hold(run.site), pytest.raises(TemporaryError, match="in progress"):
        results_folder.hold(run.site).__enter__()
    with results_folder.hold(run.site):
        pass


def test_the_lock_is_waited_for(run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = lock.try_hold(run.project.results.root / ".lock")
    assert fd is not None
    monkeypatch.setattr(results_folder.time, "sleep", lambda seconds: os.close(fd))
    with results_folder.hold(run.site):
        pass


def test_what_is_set_aside_is_kept(run: FinishedRun) -> None:
    path = run.project.results.root / "thing"
    path.mkdir()
    (path / "file").write_text("x")
    aside = results_folder.set_aside(run.project.results, path)
    assert not path.exists()
    assert (aside / "file").read_text() == "x"
    assert ":" not in aside.name


def test_a_run_that_was_launched_again_after_its_teardown_begins_anew(run: FinishedRun) -> None:
    _write_teardown(run, finished_at="now")
    with results_folder.hold(run.site):
        assert not run.project.results.receipt.exists()
        assert not run.project.results.teardown.exists()
    kept = (run.project.results.root / "replaced").iterdir()
    assert sorted(path.name.partition("-")[0] for path in kept) == ["receipt.json", "teardown.json"]


@pytest.mark.parametrize(("finished_at", "is_tier_there"), [(None, True), ("now", False)])
def test_a_teardown_that_is_under_way_or_over_is_left_alone(
    run: FinishedRun, finished_at: str | None, is_tier_there: bool
) -> None:
    _write_teardown(run, finished_at)
    if not is_tier_there:
        run.site.tier.root.rename(run.root / "gone")
    with results_folder.hold(run.site):
        assert run.project.results.receipt.exists()
        assert run.project.results.teardown.exists()


def test_bytes_are_counted_without_following_links(run: FinishedRun) -> None:
    folder = run.root / "counted"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "file").write_bytes(b"x" * 1000)
    (folder / "link").symlink_to(run.site.tier.cells)
    assert 1000 <= folders.bytes_below(folder) < 2000
    assert folders.bytes_below(run.root / "nothing") == 0
