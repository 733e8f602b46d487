from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import CellReceipt, CellVerdict, Finding, RunReceipt, Teardown

GOOD = Finding("best.pth", "torch", facts={"tensors": 8})
BAD = Finding("best.pth", "torch", problems=("the weight 'fc.bias' holds NaN",))
VERIFIED = CellVerdict("recon_baseline", "queue_1", manifest_sha256="1" * 64, findings=(GOOD,))
MISSING = CellVerdict("seg_baseline", "queue_1", missing=("no manifest: invoke pull",))
ABANDONED = dataclasses.replace(MISSING, because="the mask files are gone")
RUN = RunReceipt("digits-ablation", "2026-11-20T11:00:00.000Z", (VERIFIED, ABANDONED))
CELL = CellReceipt("digits-ablation", "recon_baseline", 1, "1" * 64, "2026", (GOOD,))


def test_a_finding_is_good_without_problems() -> None:
    assert GOOD.is_good and not BAD.is_good


def test_a_cell_is_good_when_all_that_was_loaded_is() -> None:
    assert CELL.is_good
    assert not dataclasses.replace(CELL, findings=(GOOD, BAD)).is_good


def test_a_receipt_of_nothing_is_not_good() -> None:
    assert not dataclasses.replace(CELL, findings=()).is_good
    assert not dataclasses.replace(RUN, cells=()).is_full


def test_a_cell_is_settled_when_it_is_verified_or_abandoned_with_a_reason() -> None:
    assert VERIFIED.is_settled and ABANDONED.is_settled
    assert not MISSING.is_settled


@pytest.mark.parametrize(
    "verdict",
    [
        pytest.param(CellVerdict("recon_baseline", "queue_1"), id="nothing is known"),
        pytest.param(dataclasses.replace(VERIFIED, manifest_sha256=None), id="no manifest"),
        pytest.param(dataclasses.replace(VERIFIED, findings=(GOOD, BAD)), id="a bad finding"),
        pytest.param(dataclasses.replace(VERIFIED, missing=("x",)), id="something is missing"),
        pytest.param(dataclasses.replace(MISSING, because=""), id="abandoned for no reason"),
    ],
)
def test_doubt_about_a_cell_is_not_settled(verdict: CellVerdict) -> None:
    assert not verdict.is_settled
    assert not dataclasses.replace(RUN, cells=(VERIFIED, verdict)).is_full


def test_a_run_is_full_when_every_cell_is_settled() -> None:
    assert RUN.is_full
    assert not dataclasses.replace(RUN, cells=(VERIFIED, MISSING)).is_full


@pytest.mark.parametrize(
    "changed",
    [
        {"run": "other"},
        {"cells": (VERIFIED,)},
        {"cells": (VERIFIED, MISSING)},
        {"cells": (VERIFIED, VERIFIED, ABANDONED)},
        {"cells": (VERIFIED, dataclasses.replace(ABANDONED, because="another reason"))},
        {"cells": (VERIFIED, dataclasses.replace(ABANDONED, missing=("another thing",)))},
        {"cells": (VERIFIED, dataclasses.replace(ABANDONED, cell="seg_no_skip"))},
        {"cells": (dataclasses.replace(VERIFIED, manifest_sha256="2" * 64), ABANDONED)},
        {"cells": (dataclasses.replace(VERIFIED, missing=("one byte differs",)), ABANDONED)},
    ],
)
def test_an_approval_does_not_survive_a_change_of_any_result(changed: dict[str, Any]) -> None:
    assert dataclasses.replace(RUN, **changed).digest != RUN.digest


def test_the_digest_of_a_run_whose_files_are_all_loaded_safely_is_as_it_always_was() -> None:
    assert RUN.digest == "8dabfc81be8f704ebf29b547889d17ad85c08aed97fc87f6a7101bcbfe431320"


def test_how_a_file_is_loaded_changes_what_is_approved() -> None:
    digests = {RUN.digest}
    for mode in ("trusted", "bytes"):
        found = dataclasses.replace(GOOD, load=mode)
        verdict = dataclasses.replace(VERIFIED, findings=(found,))
        digests.add(dataclasses.replace(RUN, cells=(verdict, ABANDONED)).digest)
    assert len(digests) == 3


@pytest.mark.parametrize(
    "changed",
    [{"made_at": "2026-11-21T00:00:00.000Z"}, {"cells": (ABANDONED, VERIFIED)}],
)
def test_an_approval_survives_another_look_at_the_same_results(changed: dict[str, Any]) -> None:
    assert dataclasses.replace(RUN, **changed).digest == RUN.digest


TEARDOWN = Teardown("digits-ablation", RUN.digest, "terminate", "2026-11-20T11:05:00.000Z", "typed")
READERS: list[tuple[Any, Any]] = [
    (RUN, receipt.read_run),
    (CELL, receipt.read_cell),
    (TEARDOWN, receipt.read_teardown),
]


@pytest.mark.parametrize(("record", "read"), READERS)
def test_each_receipt_reads_as_it_was_written(tmp_path: Path, record: Any, read: Any) -> None:
    path = tmp_path / "receipt.json"
    path.write_bytes(codec.to_document(record))
    assert read(path) == record


@pytest.mark.parametrize("read", [receipt.read_run, receipt.read_cell])
def test_a_receipt_that_is_not_there_is_an_error(tmp_path: Path, read: Any) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "receipt.json")


def test_a_teardown_that_is_not_there_was_not_approved_yet(tmp_path: Path) -> None:
    assert receipt.read_teardown(tmp_path / "teardown.json") is None


@pytest.mark.parametrize("read", [read for _, read in READERS])
def test_one_receipt_is_not_taken_for_another(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "receipt.json"
    for record, own in READERS:
        if own is not read:
            path.write_bytes(codec.to_document(record))
            with pytest.raises(DamagedError, match="expected format"):
                read(path)
