"""What is proven of a result."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from flips import flipped
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import codec, journal_chain, receipt
from boxcar.shared.files.journal_chain import Seal
from boxcar.shared.files.receipt import Accepted, CellReceipt, CellVerdict, Finding, RunReceipt
from boxcar.shared.paths import DurablePaths

GOOD = Finding("best.pth", "torch", facts={"tensors": 8})
BAD = Finding("best.pth", "torch", problems=("the weight 'fc.bias' holds NaN",))
VERIFIED = CellVerdict("recon_baseline", "queue_1", manifest_sha256="1" * 64, findings=(GOOD,))
MISSING = CellVerdict("seg_baseline", "queue_1", missing=("no manifest: invoke pull",))
ABANDONED = dataclasses.replace(MISSING, because="the mask files are gone")
RUN = RunReceipt("digits-ablation", "2026-11-20T11:00:00.000Z", (VERIFIED, ABANDONED))
CELL = CellReceipt("digits-ablation", "recon_baseline", 1, "1" * 64, "2026", (GOOD,))


def test_a_finding_is_good_without_problems():
    assert GOOD.is_good and not BAD.is_good


def test_a_cell_is_good_when_all_that_was_loaded_is():
    assert CELL.is_good
    assert not dataclasses.replace(CELL, findings=(GOOD, BAD)).is_good


def test_a_receipt_of_nothing_is_not_good():
    assert not dataclasses.replace(CELL, findings=()).is_good
    assert not dataclasses.replace(RUN, cells=()).is_full


def test_a_cell_is_settled_when_it_is_verified_or_abandoned_with_a_reason():
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
def test_doubt_about_a_cell_is_not_settled(verdict):
    assert not verdict.is_settled
    assert not dataclasses.replace(RUN, cells=(VERIFIED, verdict)).is_full


def test_a_run_is_full_when_every_cell_is_settled():
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
def test_an_approval_does_not_survive_a_change_of_any_result(changed):
    assert dataclasses.replace(RUN, **changed).digest != RUN.digest


def test_the_digest_of_a_run_whose_files_are_all_loaded_safely_is_as_it_always_was():
    assert RUN.digest == "8dabfc81be8f704ebf29b547889d17ad85c08aed97fc87f6a7101bcbfe431320"


def test_how_a_file_is_loaded_changes_what_is_approved():
    digests = {RUN.digest}
    for mode in ("trusted", "bytes"):
        found = dataclasses.replace(GOOD, load=mode)
        verdict = dataclasses.replace(VERIFIED, findings=(found,))
        digests.add(dataclasses.replace(RUN, cells=(verdict, ABANDONED)).digest)
    assert len(digests) == 3


@pytest.mark.parametrize(
    "changed", [{"made_at": "2026-11-21T00:00:00.000Z"}, {"cells": (ABANDONED, VERIFIED)}]
)
def test_an_approval_survives_another_look_at_the_same_results(changed):
    assert dataclasses.replace(RUN, **changed).digest == RUN.digest


# --- accepted


AT = "2026-11-22T11:00:00.000Z"
MANIFEST = b"a manifest"
MADE = Accepted("r", "c", digest.of_bytes(MANIFEST), AT, ("model.pkl",), "0.1.0")


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    """A result that is published, and was accepted."""
    tier = DurablePaths(tmp_path, "r")
    for path, data in (
        (tier.manifest("c"), MANIFEST),
        (tier.accepted("c"), codec.to_document(MADE)),
    ):
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    return tier


def test_it_holds_for_the_very_manifest_that_it_names(tier):
    assert receipt.accepted_result(tier, "c") == MADE
    tier.manifest("c").write_bytes(b"another")
    assert receipt.accepted_result(tier, "c") is None
    tier.manifest("c").unlink()
    assert receipt.accepted_result(tier, "c") is None


def test_of_a_cell_that_was_never_accepted_there_is_none(tier):
    assert receipt.accepted_result(tier, "d") is None


def test_each_flipped_bit_is_noticed_and_named_with_the_way_out(tier):
    for bad in flipped(codec.to_document(MADE), 300, seed=5):
        tier.accepted("c").write_bytes(bad)
        with pytest.raises(DamagedError, match=r"c\.json") as found:
            receipt.accepted_result(tier, "c")
        assert isinstance(found.value, NewerError) or "verify" in str(found.value)


# --- checks of the job


SEAL = Seal(b',"check":"', b'"}')


@given(st.binary(), st.binary())
def test_what_was_sealed_fits_after_that_and_after_nothing_else(body, other):
    before = journal_chain.check_of(other)
    data = SEAL.put(body, before)
    assert SEAL.fits(data, before)
    assert SEAL.read(data) == journal_chain.check_of(before.encode() + body)
    assert not SEAL.fits(data, journal_chain.check_of(other + b"x"))


@given(st.binary(max_size=60))
def test_bytes_that_nobody_sealed_do_not_fit(data):
    assert not SEAL.fits(data)


def test_no_flipped_bit_is_taken_for_what_was_sealed():
    data = SEAL.put(b'{"cell":"c1_1"')
    assert not [bad for bad in flipped(data, 8 * len(data), seed=1) if SEAL.fits(bad)]


def test_the_check_of_pieces_is_that_of_the_whole():
    running = journal_chain.Running()
    running.add(b"one")
    assert running.add(b"two") == journal_chain.check_of(b"onetwo")
