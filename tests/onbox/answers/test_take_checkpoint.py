from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import take_checkpoint

DATA = b"step 3000 of the weights"
AT = "2026-11-21T03:27:43.973Z"


@pytest.fixture
def on_box(tmp_path: Path) -> RunOnBox:
    return RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path / "data"))


@pytest.fixture
def folder(on_box: RunOnBox) -> Path:
    """Where the laptop has sent the file to."""
    folder = on_box.tier.resume("a")
    folder.mkdir(parents=True)
    (folder / "1-7-latest.pth").write_bytes(DATA)
    return folder


def pointer(attempt: int = 1) -> Resume:
    file = FileRecord("1-7-latest.pth", len(DATA), digest.of_bytes(DATA))
    return Resume("a", attempt, AT, "latest.pth", file)


TAKEN = run_asks.CheckpointTaken(is_taken=True, is_lacking=False)
LACKING = run_asks.CheckpointTaken(is_taken=False, is_lacking=True)
NOT_NEEDED = run_asks.CheckpointTaken(is_taken=False, is_lacking=False)


def ask(on_box: RunOnBox) -> run_asks.CheckpointTaken:
    return take_checkpoint.answer(run_asks.TakeCheckpoint("q1", "a", pointer()), on_box)


def test_a_whole_checkpoint_is_what_the_next_attempt_finds(on_box, folder):
    assert ask(on_box) == TAKEN
    assert resume_pointer.read_resume_pointer(folder) == pointer()


@pytest.mark.parametrize("data", [None, b"", DATA[:-1], DATA[:-1] + b"X"])
def test_what_is_not_whole_is_asked_for_and_counts_for_nothing(on_box, folder, data):
    (folder / "1-7-latest.pth").unlink()
    if data is not None:
        (folder / "1-7-latest.pth").write_bytes(data)
    assert ask(on_box) == LACKING
    assert resume_pointer.read_resume_pointer(folder) is None


def test_on_a_box_that_knows_nothing_of_the_run_it_is_asked_for(on_box):
    assert ask(on_box) == LACKING
    assert not on_box.tier.durable_dir.exists()


def test_what_the_box_mirrored_itself_is_kept(on_box, folder):
    (folder / resume_pointer.FILE).write_bytes(codec.to_document(pointer(attempt=4)))
    assert ask(on_box) == NOT_NEEDED
    assert resume_pointer.read_resume_pointer(folder) == pointer(attempt=4)


def test_a_cell_that_the_queue_has_tried_is_lent_nothing(on_box, folder):
    path = on_box.tier.journal("q1")
    path.parent.mkdir()
    common = {"run": "tiny", "queue": "q1", "box": "box-a"}
    Journal(path, common).append("cell.started", cell="a", attempt=1, cfg="a", task="t", epochs=1)
    assert ask(on_box) == NOT_NEEDED
    assert resume_pointer.read_resume_pointer(folder) is None


def test_asked_twice_it_is_taken_once(on_box, folder):
    assert [ask(on_box), ask(on_box)] == [TAKEN, NOT_NEEDED]
    assert resume_pointer.read_resume_pointer(folder) == pointer()


def test_nothing_is_written_behind_a_link(on_box, folder):
    folder.rename(elsewhere := folder.with_name("elsewhere"))
    folder.symlink_to(elsewhere)
    with pytest.raises(InputError, match="symbolic link"):
        ask(on_box)
    assert resume_pointer.read_resume_pointer(elsewhere) is None
