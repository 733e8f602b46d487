from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared import timestamp
from boxcar.shared.files.attempt import Done
from onbox.judging.judgement import has_saved

BEGAN = "2026-11-21T02:00:00.000Z"
BEGAN_S = timestamp.parse_utc(BEGAN).timestamp()


def done(rc: int = 85) -> Done:
    return Done("c", 1, rc, BEGAN, BEGAN, 12.0, 0, was_told_to_stop=True, release="one")


def leave(out: Path, name: str, after_s: float, content: bytes = b"whole") -> None:
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_bytes(content)
    os.utime(out / name, (BEGAN_S + after_s, BEGAN_S + after_s))


def test_only_what_is_newer_than_the_attempts_begin_was_saved_by_it(tmp_path: Path) -> None:
    leave(tmp_path, "step_1.pt", -60)
    assert not has_saved(tmp_path, "step_*.pt", done())
    leave(tmp_path, "step_2.pt", 1)
    assert has_saved(tmp_path, "step_*.pt", done())
    assert has_saved(tmp_path, "step_2.pt", done())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04, and no end"])
def test_what_is_not_whole_was_not_saved(tmp_path: Path, content: bytes) -> None:
    leave(tmp_path, "step_2.pt", 1, content)
    assert not has_saved(tmp_path, "step_*.pt", done())


@pytest.mark.parametrize(("rc", "is_saved"), [(85, True), (1, True), (-9, False), (137, False)])
def test_a_folder_without_an_index_counts_where_its_script_left_by_itself(
    tmp_path: Path, rc: int, is_saved: bool
) -> None:
    (tmp_path / "step_2").mkdir()
    (tmp_path / "step_2" / "weights.pt").write_bytes(b"just now")
    assert has_saved(tmp_path, "step_*/", done(rc)) == is_saved


def test_a_job_that_names_no_checkpoint_saves_none_that_anybody_knows(tmp_path: Path) -> None:
    leave(tmp_path, "step_2.pt", 1)
    assert not has_saved(tmp_path, None, done())


def test_what_leads_out_of_its_folder_is_none(tmp_path: Path) -> None:
    leave(tmp_path, "elsewhere.pt", 1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/last.pt").symlink_to(tmp_path / "elsewhere.pt")
    assert not has_saved(tmp_path / "out", "last.pt", done())
