from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.results.second_home_record import FILE, keep, manifest_sha256
from boxcar.shared.errors import DamagedError
from boxcar.shared.paths import ResultPaths

SHA = "0a" * 32


def test_what_was_written_down_of_a_cell_is_read_again(tmp_path: Path) -> None:
    results = ResultPaths(tmp_path, "tiny")
    assert manifest_sha256(results, "a") is None
    results.root.mkdir()
    keep(results, "a", SHA)
    keep(results, "b", "0b" * 32)
    assert (manifest_sha256(results, "a"), manifest_sha256(results, "b")) == (SHA, "0b" * 32)


def test_a_damaged_record_is_no_word_for_anything(tmp_path: Path) -> None:
    results = ResultPaths(tmp_path, "tiny")
    results.root.mkdir()
    (results.root / FILE).write_text("{")
    with pytest.raises(DamagedError, match=FILE):
        manifest_sha256(results, "a")
