"""What each reader of a small file says where it is not there, or damaged, or another one.

What they read of a good one is told of real files in tests/shared/test_v1_files.py.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import (
    attempt,
    codec,
    control,
    delivered,
    heartbeat,
    manifest,
    plan,
    receipt,
    release,
    resume_pointer,
)
from boxcar.shared.files.attempt import Claim, Done
from boxcar.shared.files.control import Control
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.heartbeat import Copying, Heartbeat

V1 = Path(__file__).parents[2] / "data" / "v1"
AT = "2026-11-20T10:00:00.000Z"


class Reader(NamedTuple):
    """`missing`: what it says of a file that is not there, or that it raises FileNotFoundError."""

    name: str
    read: Callable[[Path], Any]
    missing: Any = FileNotFoundError


READERS = [
    Reader("start.json", control.read_agent_start),
    Reader("running.json", attempt.read_running, None),
    Reader("done.json", attempt.read_done, None),
    Reader("processes.json", attempt.read_processes, None),
    Reader("claim.json", attempt.read_claim, None),
    Reader("control.json", control.wanted, control.RUN),
    Reader("heartbeat.json", heartbeat.read_heartbeat, None),
    Reader("delivered.json", delivered.read_delivered, Delivered({})),
    Reader("newest.json", release.releases, ()),
    Reader("release.json", lambda path: release.read_release(path.parent)),
    Reader("plan.json", plan.read_plan),
    Reader("manifest.json", manifest.read_manifest),
    Reader("cell-receipt.json", receipt.read_cell),
    Reader("receipt.json", receipt.read_run),
    Reader("teardown.json", receipt.read_teardown, None),
    Reader("resume.json", lambda path: resume_pointer.read_resume_pointer(path.parent), None),
]
each_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


@each_reader
def test_what_is_not_there_is_not_damaged(reader, tmp_path):
    if reader.missing is FileNotFoundError:
        with pytest.raises(FileNotFoundError):
            reader.read(tmp_path / reader.name)
    else:
        assert reader.read(tmp_path / reader.name) == reader.missing


@each_reader
@pytest.mark.parametrize("kept", [0, 3, 40])
def test_what_is_damaged_is_not_taken_for_what_is_not_there(reader, kept, tmp_path):
    path = tmp_path / reader.name
    path.write_bytes((V1 / reader.name).read_bytes()[:kept])
    with pytest.raises(DamagedError, match=f"^{path}: "):
        reader.read(path)


@each_reader
def test_one_is_not_taken_for_another(reader, tmp_path):
    path = tmp_path / reader.name
    for other in {other.name for other in READERS} - {reader.name}:
        shutil.copy(V1 / other, path)
        with pytest.raises(DamagedError, match=f"^{path}: expected format"):
            reader.read(path)


# --- of an attempt


@pytest.mark.parametrize("rc", ["0", None, False, 0.0])
def test_an_exit_code_that_is_no_number_is_not_taken_for_success(tmp_path, rc):
    done = Done("a", 1, 0, AT, AT, 60.0, 1, False, "one")
    path = tmp_path / "record.json"
    path.write_bytes(codec.to_document(Done(**codec.encode(done) | {"rc": rc})))
    with pytest.raises(DamagedError, match="rc: expected int"):
        attempt.read_done(path)


@pytest.mark.parametrize("read", [attempt.read_running, attempt.read_done, attempt.read_processes])
def test_what_is_no_file_in_a_records_place_is_no_record_and_keeps_nobody_waiting(tmp_path, read):
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


def test_the_first_claim_stands_and_says_whose_it_is(tmp_path):
    path = tmp_path / "a.json"
    mine, theirs = Claim("a", "queue_1", "box-a", AT), Claim("a", "queue_2", "box-b", AT)
    assert atomic.create_once(path, codec.to_document(mine))
    assert not atomic.create_once(path, codec.to_document(theirs))
    assert attempt.read_claim(path) == mine


# --- of an agent


@pytest.mark.parametrize("want", ["run", "drain", "stop", "", "Stop", "pause", "stop\n"])
def test_a_word_is_passed_on_and_one_that_is_not_known_is_not_taken_for_run(tmp_path, want):
    path = tmp_path / "queue_1.json"
    path.write_bytes(codec.to_document(Control(want, AT)))
    assert control.wanted(path) == want


@pytest.mark.parametrize(
    ("copying", "words"),
    [
        (Copying("c", AT, 11, 10), "copying: more is done than there is"),
        (Copying("c", AT, -1, 10), "copying: more is done than there is"),
        (Copying("c", "yesterday", 1, 10), "at: "),
    ],
)
def test_only_a_copy_that_can_be_so_is_told(tmp_path, copying, words):
    beat = Heartbeat("queue_1", "box-a", "3f9a", AT, 4711, "idle", copying=copying)
    path = tmp_path / "queue_1.json"
    path.write_bytes(codec.to_document(beat))
    with pytest.raises(DamagedError, match=f"^{path}: {words}"):
        heartbeat.read_heartbeat(path)
    good = replace(beat, copying=Copying("c", AT, 3, 10))
    path.write_bytes(codec.to_document(good))
    assert heartbeat.read_heartbeat(path) == good


def test_each_endpoint_has_its_own_cursor(tmp_path):
    two = Delivered({"1f2e": Cursor(41), "3d4c": Cursor(7, disabled="410 Gone")})
    path = tmp_path / "queue_1.json"
    path.write_bytes(codec.to_document(two))
    assert delivered.read_delivered(path) == two
    assert Cursor() == Cursor(seq=0, disabled=None)


# --- of a plan


def test_a_box_is_found_by_its_name():
    found = plan.read_plan(V1 / "plan.json")
    assert found.box("box-b") == found.boxes[1]
    with pytest.raises(KeyError, match="box-c"):
        found.box("box-c")
