from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume

POINTER = Resume(
    cell="recon_baseline",
    attempt=2,
    at="2026-11-20T10:00:00.000Z",
    path="checkpoints/latest.pth",
    file=FileRecord("2-1763632800000000000-latest.pth", 351_016, "5" * 64),
)


def test_the_pointer_reads_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / resume_pointer.FILE).write_bytes(codec.to_document(POINTER))
    assert resume_pointer.read_resume_pointer(tmp_path) == POINTER


def test_where_nothing_was_mirrored_there_is_no_pointer(tmp_path: Path) -> None:
    (tmp_path / "1-1763632800000000000-latest.pth").write_bytes(b"not believed without it")
    assert resume_pointer.read_resume_pointer(tmp_path) is None
    assert resume_pointer.read_resume_pointer(tmp_path / "no folder") is None


def test_a_damaged_pointer_is_not_taken_for_a_missing_one(tmp_path: Path) -> None:
    path = tmp_path / resume_pointer.FILE
    path.touch()
    with pytest.raises(DamagedError, match=f"^{path}: "):
        resume_pointer.read_resume_pointer(tmp_path)
