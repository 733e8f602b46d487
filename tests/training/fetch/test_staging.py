"""fetch() as a train script and a person meet it: once, whole, resumable, one process at a time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import odd_sources
import pytest
from ranks_at_work import run_ranks
from waiting import until

from boxcar.shared.errors import InputError, NoRoomError, TemporaryError
from boxcar.training.fetch import MissingError, check, download, fetch, records
from boxcar.training.fetch.staging import LOCK

odd_sources.register()
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def small_and_hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", 1024)
    monkeypatch.setattr(records, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(download, "RETRY_AFTER_S", ())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "store"
    store.mkdir()
    for number, name in enumerate(("a_train.h5", "a_val.h5", "b_train.h5", "b_val.h5")):
        (store / name).write_bytes(bytes([number]) * (5000 + number))
    return store


def spec(store: Path, **more: Any) -> dict[str, Any]:
    patterns = [
        f"odd://{store}/nowhere/{{task}}_{{split}}.h5",
        f"odd://{store}/{{task}}_{{split}}.h5",
    ]
    return {"to": str(store.parent / "data"), "tasks": ["a", "b"], "patterns": patterns} | more


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith((".", "ODD")))


def test_all_splits_come_and_a_missing_optional_one_is_only_said(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = fetch(spec(store))
    assert sorted(files) == [("a", "train"), ("a", "val"), ("b", "train"), ("b", "val")]
    assert all(path.read_bytes() == (store / path.name).read_bytes() for path in files.values())
    assert names(store.parent / "data") == names(store)
    said = capsys.readouterr().err
    assert "optional, and not there: a test" in said and "4 files fetched and checked" in said


def test_the_second_time_nothing_is_read(store: Path) -> None:
    files = fetch(spec(store))
    odd_sources.behave(store)
    assert fetch(spec(store)) == files and odd_sources.reads(store) == []


def test_a_missing_required_split_ends_it_before_a_byte_is_fetched(store: Path) -> None:
    (store / "b_train.h5").unlink()
    with pytest.raises(MissingError, match="not found: b train"):
        fetch(spec(store))
    assert odd_sources.reads(store) == [] and names(store.parent / "data") == []


def test_a_look_writes_nothing(store: Path) -> None:
    assert [o.is_found for o in check(spec(store))] == [True, True, False, True, True, False]
    assert names(store.parent) == ["store"] and odd_sources.reads(store) == []


def test_a_disk_without_room_is_said_with_the_bytes_before_a_byte_is_fetched(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = os.statvfs(store)
    values = [*disk[:4], 1, *disk[5:]]
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(values))
    with pytest.raises(NoRoomError, match=r"MB are free, [\d.,]+ MB are needed"):
        fetch(spec(store))
    assert odd_sources.reads(store) == []


def test_what_came_before_an_error_is_not_fetched_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SAVE_EVERY_S", 1000.0)
    wants = spec(store, splits={"train": "required"})
    attempts = 0
    while not attempts or names(store.parent / "data") != ["a_train.h5", "b_train.h5"]:
        attempts += 1
        odd_sources.behave(store, fail_after=3)
        with contextlib.suppress(TemporaryError):
            fetch(wants, workers=1)
    assert attempts == 4  # 10 pieces


KILLED = """
import sys
import odd_sources
from boxcar.training.fetch import fetch, records
odd_sources.register()
records.PIECE_BYTES, records.SAVE_EVERY_S = 1024, 0.0
fetch(sys.argv[1], workers=2)
"""


def start(spec_file: Path) -> subprocess.Popen[bytes]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/training")])}
    return subprocess.Popen([sys.executable, "-c", KILLED, str(spec_file)], env=env)


def test_a_killed_fetch_goes_on_where_it_was_and_holds_nobody_up(store: Path) -> None:
    wants = spec(store, tasks=["a"], splits={"train": "required"})
    spec_file = store.parent / "data.json"
    spec_file.write_text(json.dumps(wants))
    odd_sources.behave(store, hang_after=3)
    process = start(spec_file)
    record = store.parent / "data" / "a_train.h5.part.json"

    def has_three_pieces() -> bool:
        assert process.poll() is None
        return record.exists() and len(json.loads(record.read_bytes())["done"]) == 3

    until(has_three_pieces)
    process.send_signal(signal.SIGKILL)
    process.wait()
    odd_sources.behave(store)
    assert names(store.parent / "data") == ["a_train.h5.part", "a_train.h5.part.json"]
    [path] = fetch(wants).values()
    assert path.read_bytes() == (store / "a_train.h5").read_bytes()
    assert len(odd_sources.reads(store)) == 2
    assert names(store.parent / "data") == ["a_train.h5"]


def fetch_as_a_rank(wants: dict[str, Any], meeting: Path) -> list[str]:
    odd_sources.register()
    (meeting / os.environ["RANK"]).touch()
    while len(list(meeting.iterdir())) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.001)
    return sorted(path.name for path in fetch(wants).values())


def test_of_four_ranks_at_once_one_fetches_and_all_have_the_files(store: Path) -> None:
    odd_sources.behave(store, slow_s=0.05)
    meeting = store.parent / "meeting"
    meeting.mkdir()
    found = run_ranks(4, fetch_as_a_rank, spec(store), meeting)
    assert found == [names(store.parent / "data")] * 4
    assert len(odd_sources.reads(store)) == 4


def test_a_read_only_folder_with_all_files_will_do(store: Path) -> None:
    wants = spec(store, splits={"train": "required"})
    fetch(wants)
    (store.parent / "data" / LOCK).unlink()
    assert fetch(wants) and not (store.parent / "data" / LOCK).exists()


def test_a_spec_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data\.json: cannot be read: No such file"):
        fetch(tmp_path / "data.json")
    (tmp_path / "data.json").write_text("to: data")
    with pytest.raises(InputError, match=r"data\.json: expected JSON"):
        fetch(tmp_path / "data.json")
