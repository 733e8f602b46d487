from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import attempt, codec
from boxcar.shared.files.attempt import Done, Running

RUNNING = Running(
    cell="recon_baseline",
    attempt=1,
    pid=4712,
    start_time="8812345",
    boot_id="0b5ac1a5-7a3e-4c62-9a4e-1d3c3c1a2b11",
    started_at="2026-11-20T10:00:00.000Z",
)
DONE = Done(
    cell="recon_baseline",
    attempt=1,
    rc=-9,
    started_at="2026-11-20T10:00:00.000Z",
    ended_at="2026-11-20T10:01:00.000Z",
    seconds=60.0,
    oom_kills=1,
    was_told_to_stop=False,
    release="one",
)
READERS: list[tuple[Any, Any]] = [(RUNNING, attempt.read_running), (DONE, attempt.read_done)]


@pytest.mark.parametrize(("record", "read"), READERS)
def test_a_record_of_an_attempt_reads_as_it_was_written(
    tmp_path: Path, record: Any, read: Any
) -> None:
    path = tmp_path / "record.json"
    assert read(path) is None
    path.write_bytes(codec.to_document(record))
    assert read(path) == record


@pytest.mark.parametrize(
    ("read", "other"), [(attempt.read_running, DONE), (attempt.read_done, RUNNING)]
)
def test_a_cell_that_runs_is_not_taken_for_one_that_ended(
    tmp_path: Path, read: Any, other: Any
) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(codec.to_document(other))
    with pytest.raises(DamagedError, match=f"^{path}: expected format"):
        read(path)


@pytest.mark.parametrize("read", [attempt.read_running, attempt.read_done])
def test_a_damaged_record_is_not_taken_for_a_missing_one(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(codec.to_document(DONE)[:40])
    with pytest.raises(DamagedError, match=f"^{path}: "):
        read(path)


@pytest.mark.parametrize("rc", ["0", None, False, 0.0])
def test_an_exit_code_that_is_no_number_is_not_taken_for_success(tmp_path: Path, rc: Any) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(codec.to_document(Done(**codec.encode(DONE) | {"rc": rc})))
    with pytest.raises(DamagedError, match="rc: expected int"):
        attempt.read_done(path)


@pytest.mark.parametrize("read", [attempt.read_running, attempt.read_done, attempt.read_processes])
def test_what_is_no_file_in_a_records_place_is_no_record_and_keeps_nobody_waiting(
    tmp_path: Path, read: Any
) -> None:
    path = tmp_path / "record.json"
    os.mkfifo(path)
    assert read(path) is None
    path.unlink()
    path.symlink_to("elsewhere.json")
    (tmp_path / "elsewhere.json").write_bytes(b"{}")
    assert read(path) is None
    path.unlink()
    path.mkdir()
    assert read(path) is None
