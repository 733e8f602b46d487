from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, heartbeat
from boxcar.shared.files.heartbeat import Copying, Heartbeat

IDLE = Heartbeat("queue_1", "box-a", "3f9a", "2026-11-20T10:00:00.000Z", 4711, "idle")
RUNNING = Heartbeat(
    *("queue_1", "box-a", "3f9a", "2026-11-20T10:00:00.000Z", 4711, "running"),
    cell="recon_baseline",
    attempt=2,
    progress={"step": 120, "loss": 0.41},
    gauges={"scratch_free_bytes": 10**12},
    copying=Copying("recon_wide", "2026-11-20T09:59:00.000Z", 3, 10),
)


@pytest.mark.parametrize("beat", [IDLE, RUNNING])
def test_a_heartbeat_reads_as_it_was_written(tmp_path: Path, beat: Heartbeat) -> None:
    path = tmp_path / "queue_1.json"
    path.write_bytes(codec.to_document(beat))
    assert heartbeat.read_heartbeat(path) == beat


def test_before_the_first_heartbeat_there_is_none(tmp_path: Path) -> None:
    assert heartbeat.read_heartbeat(tmp_path / "queue_1.json") is None


@pytest.mark.parametrize(
    ("copying", "words"),
    [
        (Copying("c", "2026-11-20T09:59:00.000Z", 11, 10), "copying: more is done than there is"),
        (Copying("c", "2026-11-20T09:59:00.000Z", -1, 10), "copying: more is done than there is"),
        (Copying("c", "yesterday", 1, 10), "at: "),
    ],
)
def test_a_copy_that_cannot_be_so_is_a_damage(tmp_path: Path, copying: Copying, words: str) -> None:
    path = tmp_path / "queue_1.json"
    path.write_bytes(codec.to_document(replace(IDLE, copying=copying)))
    with pytest.raises(DamagedError, match=f"^{path}: {words}"):
        heartbeat.read_heartbeat(path)


def test_a_damaged_heartbeat_is_not_taken_for_a_missing_one(tmp_path: Path) -> None:
    path = tmp_path / "queue_1.json"
    path.touch()
    with pytest.raises(DamagedError, match=f"^{path}: "):
        heartbeat.read_heartbeat(path)
