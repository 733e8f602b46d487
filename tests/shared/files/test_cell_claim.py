from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import attempt, codec
from boxcar.shared.files.attempt import Claim

MINE = Claim("recon_baseline", "queue_1", "box-a", "2026-11-20T10:00:00.000Z")
THEIRS = Claim("recon_baseline", "queue_2", "box-b", "2026-11-20T10:00:00.001Z")


def test_the_first_claim_stands_and_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "recon_baseline.json"
    assert attempt.read_claim(path) is None
    assert atomic.create_once(path, codec.to_document(MINE))
    assert not atomic.create_once(path, codec.to_document(THEIRS))
    assert attempt.read_claim(path) == MINE


def test_a_claim_that_a_crash_left_empty_is_not_taken_for_a_free_cell(tmp_path: Path) -> None:
    path = tmp_path / "recon_baseline.json"
    path.touch()
    with pytest.raises(DamagedError, match=f"^{path}: "):
        attempt.read_claim(path)
