from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.results import compare
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs import next_step, verify
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic

CELLS = ("a", "b", "c")


def is_so(run: FinishedRun) -> tuple[bool, bool]:
    """Whether all is settled, and whether something is stale."""
    view = look_at_run(run.site, timestamp.utc_now())
    stale = compare.beside_the_manifests(run.site, view.roster.cells)
    return next_step.is_settled(view, run.site), bool(stale)


@pytest.fixture
def here(tmp_path: Path) -> FinishedRun:
    """All of it is here, with receipts."""
    run = make_run(tmp_path, CELLS)
    for cell in CELLS:
        run.site.tier.receipt(cell).write_bytes(b"{}")
    run.copy_here()
    return run


@pytest.fixture
def verified(here: FinishedRun) -> FinishedRun:
    """And a verify has found that nothing is open."""
    assert is_so(here) == (False, False)
    assert verify.verify(here.project) == 0
    assert is_so(here) == (True, False)
    return here


def test_what_a_verify_has_found_open_is_not_settled(here: FinishedRun) -> None:
    here.here("b", "weights.dat").write_bytes(b"other")
    assert verify.verify(here.project) == 1
    assert not is_so(here)[0]


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    atomic.write_whole(path, b"{ }")


@pytest.mark.parametrize(
    ("where", "change"), [("tier", replace), ("here", replace), ("here", remove)]
)
def test_a_receipt_that_is_another_one_is_seen(
    verified: FinishedRun, where: str, change: Callable[[Path], None]
) -> None:
    tier = verified.site.tier.receipt("b")
    change(tier if where == "tier" else verified.here("b", paths.RECEIPT))
    assert is_so(verified) == (True, True)


def test_a_journal_that_is_another_one_is_seen(verified: FinishedRun) -> None:
    (verified.project.results.journals / "q1.jsonl").write_bytes(b"")
    assert is_so(verified) == (True, True)


def test_a_receipt_of_the_run_that_leaves_something_open_is_seen(verified: FinishedRun) -> None:
    verified.here("b", "weights.dat").write_bytes(b"other")
    assert verify.verify(verified.project) == 1
    assert not is_so(verified)[0]


def test_a_receipt_of_the_run_that_cannot_be_read_settles_nothing(verified: FinishedRun) -> None:
    verified.site.results.receipt.write_bytes(b"{")
    assert not is_so(verified)[0]


def test_a_result_that_was_published_again_is_seen(verified: FinishedRun) -> None:
    verified.publish("b", {"weights.dat": b"other", "metrics.json": b"{}"})
    assert not is_so(verified)[0]


def test_a_cell_that_was_added_is_seen(verified: FinishedRun) -> None:
    verified.publish("d")
    assert not is_so(verified)[0]
