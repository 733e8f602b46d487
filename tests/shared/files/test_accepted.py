from __future__ import annotations

from pathlib import Path

import pytest
from flips import flipped

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.paths import DurablePaths

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


def test_it_holds_for_the_very_manifest_that_it_names(tier: DurablePaths) -> None:
    assert receipt.accepted_result(tier, "c") == MADE
    tier.manifest("c").write_bytes(b"another")
    assert receipt.accepted_result(tier, "c") is None
    tier.manifest("c").unlink()
    assert receipt.accepted_result(tier, "c") is None


def test_of_a_cell_that_was_never_accepted_there_is_none(tier: DurablePaths) -> None:
    assert receipt.accepted_result(tier, "d") is None


def test_each_flipped_bit_is_noticed_and_named_with_the_way_out(tier: DurablePaths) -> None:
    for bad in flipped(codec.to_document(MADE), 300, seed=5):
        tier.accepted("c").write_bytes(bad)
        with pytest.raises(DamagedError, match=r"c\.json") as found:
            receipt.accepted_result(tier, "c")
        assert isinstance(found.value, NewerError) or "verify" in str(found.value)
