from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.common.kept import found_before
from boxcar.laptop.results import compare
from boxcar.laptop.run.look import look
from boxcar.laptop.verbs import settled, verify
from boxcar.laptop.verbs.settled import Settled
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import receipt

CELLS = ("a", "b", "c")
YEAR_NS = 365 * 24 * 3600 * 10**9


def of(run: FinishedRun) -> Settled:
    return Settled(look(run.site, timestamp.utc_now()), run.site)


def is_so(run: FinishedRun) -> tuple[bool, bool]:
    """Whether all is settled, and whether something is stale."""
    found = of(run)
    return found.is_so(), bool(found.stale())


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedRun:
    """All of it is here, with receipts, and was written long ago."""
    monkeypatch.setattr(settled, "WORTH_CELLS", 1)
    now_ns = found_before.time.time_ns
    monkeypatch.setattr(found_before.time, "time_ns", lambda: now_ns() + YEAR_NS)
    run = make_run(tmp_path, CELLS)
    for cell in CELLS:
        run.site.tier.receipt(cell).write_bytes(b"{}")
    run.copy_here()
    return run


@pytest.fixture
def known(large: FinishedRun) -> FinishedRun:
    """And a verify has found that nothing is open."""
    assert verify.verify(large.project) == 0
    return large


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Of which cells the receipts are compared, one item for each comparison."""
    read, found = compare.beside_the_manifests, list[Any]()

    def compared(run: Any, cells: Any) -> Any:
        found.append([cell.name for cell in cells])
        return read(run, cells)

    monkeypatch.setattr(compare, "beside_the_manifests", compared)
    return found


def test_what_verify_has_found_is_read_by_nobody_again(
    known: FinishedRun, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipt, "parse_run", None)
    assert is_so(known) == (True, False)
    assert asked == [[]], "the journals alone"


def test_verify_asks_no_one_what_was_found_before(known: FinishedRun, asked: list[Any]) -> None:
    """It remembers what it found, and no more."""
    known.site.tier.receipt("b").write_bytes(b"{ }")
    assert verify.verify(known.project) == 1
    assert [*CELLS] in asked
    used = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(verify)))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).startswith("settled")
    }
    assert used <= {"stamps_beside", "is_found"}


def test_what_a_verify_has_found_open_is_not_kept(large: FinishedRun) -> None:
    (large.here("b", "weights.dat")).write_bytes(b"other")
    assert verify.verify(large.project) == 1
    assert not of(large).is_so()


def test_of_a_small_run_nothing_is_kept(
    large: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settled, "WORTH_CELLS", len(CELLS) + 1)
    assert verify.verify(large.project) == 0
    assert is_so(large) == (True, False)
    assert not (large.root / ".boxcar/found").exists()


def test_what_a_look_finds_is_not_found_out_again(large: FinishedRun, asked: list[Any]) -> None:
    assert verify.verify(large.project) == 0
    (large.root / ".boxcar/found/tiny.json").unlink()
    asked.clear()
    assert [is_so(large), is_so(large)] == [(True, False)] * 2
    assert asked == [[], [*CELLS], []]


def remove(run: FinishedRun, path: Path) -> None:
    path.unlink()


def replace(run: FinishedRun, path: Path) -> None:
    atomic.write_whole(path, b"{ }")


@pytest.mark.parametrize(
    ("where", "change"), [("tier", replace), ("here", replace), ("here", remove)]
)
def test_a_receipt_that_is_another_one_is_seen(
    known: FinishedRun, where: str, change: Callable[[FinishedRun, Path], None]
) -> None:
    path = known.site.tier.receipt("b") if where == "tier" else known.here("b", paths.RECEIPT)
    change(known, path)
    assert is_so(known) == (True, True)


def test_a_journal_that_is_another_one_is_seen(known: FinishedRun) -> None:
    (known.project.results.journals / "q1.jsonl").write_bytes(b"")
    assert is_so(known) == (True, True)


def test_a_receipt_of_the_run_that_leaves_something_open_is_seen(known: FinishedRun) -> None:
    known.here("b", "weights.dat").write_bytes(b"other")
    assert verify.verify(known.project) == 1
    assert not of(known).is_so()


def test_a_result_that_was_published_again_is_seen(known: FinishedRun) -> None:
    known.publish("b", {"weights.dat": b"other", "metrics.json": b"{}"})
    assert not of(known).is_so()


def test_a_cell_that_was_added_is_seen(known: FinishedRun) -> None:
    known.publish("d")
    assert not of(known).is_so()
