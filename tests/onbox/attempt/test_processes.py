from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from boxcar.shared.disk import atomic
from boxcar.shared.files.attempt import read_processes
from boxcar.shared.paths import ScratchPaths
from onbox.attempt import watch
from onbox.attempt.leftovers import written_down
from onbox.attempt.watch import Record

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchPaths:
    made = ScratchPaths(tmp_path, "r")
    made.cell("c").mkdir(parents=True)
    return made


def test_what_was_started_is_written_down_and_found_again_while_it_lives(
    scratch: ScratchPaths,
) -> None:
    record = Record(scratch, "c", 1)
    with subprocess.Popen(SLEEP) as child:
        assert record.look() >= watch.LOOK_EVERY_S
        assert child.pid in written_down(scratch, "c", 1)
        assert written_down(scratch, "c", 2) == [], "of another attempt"
        child.kill()
    assert child.pid not in written_down(scratch, "c", 1)
    record.look()
    found = read_processes(scratch.processes("c"))
    assert found
    assert child.pid not in [one.pid for one in found.processes]


def test_a_number_that_is_somebody_elses_by_now_is_not_taken_for_it(
    scratch: ScratchPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(SLEEP) as child:
        Record(scratch, "c", 1).look()
        monkeypatch.setattr(watch.process, "boot_id", lambda: "another boot")
        assert written_down(scratch, "c", 1) == []
        child.kill()


def test_a_record_is_written_only_when_something_has_changed(
    scratch: ScratchPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(scratch, "c", 1)
    record.look()
    monkeypatch.setattr(atomic, "write_whole", lambda path, data: pytest.fail("written again"))
    record.look()


def test_without_a_record_or_with_a_damaged_one_nothing_is_known(scratch: ScratchPaths) -> None:
    assert written_down(scratch, "c", 1) == []
    scratch.processes("c").write_bytes(b"{")
    assert written_down(scratch, "c", 1) == []
    scratch.processes("c").unlink()
    os.mkfifo(scratch.processes("c"))
    assert written_down(scratch, "c", 1) == []
