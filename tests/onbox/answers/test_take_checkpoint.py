from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.wire import asks
from onbox.answers import take_checkpoint

DATA = b"step 3000 of the weights"
AT = "2026-11-21T03:27:43.973Z"


@pytest.fixture
def on_box(tmp_path: Path) -> asks.RunOnBox:
    return asks.RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path / "data"))


@pytest.fixture
def folder(on_box: asks.RunOnBox) -> Path:
    """Where the laptop has sent the file to."""
    folder = on_box.tier.resume("a")
    folder.mkdir(parents=True)
    (folder / "1-7-latest.pth").write_bytes(DATA)
    return folder


def pointer(attempt: int = 1) -> Resume:
    file = FileRecord("1-7-latest.pth", len(DATA), digest.of_bytes(DATA))
    return Resume("a", attempt, AT, "latest.pth", file)


def test_a_whole_checkpoint_is_what_the_next_attempt_finds(
    on_box: asks.RunOnBox, folder: Path
) -> None:
    assert take_checkpoint.answer(asks.TakeCheckpoint("a", pointer()), on_box).is_new
    assert resume_pointer.read(folder) == pointer()


@pytest.mark.parametrize("data", [b"", DATA[:-1], DATA[:-1] + b"X"])
def test_one_wrong_byte_is_refused_and_counts_for_nothing(
    on_box: asks.RunOnBox, folder: Path, data: bytes
) -> None:
    (folder / "1-7-latest.pth").write_bytes(data)
    with pytest.raises(DamagedError, match="the checkpoint that was sent is not whole"):
        take_checkpoint.answer(asks.TakeCheckpoint("a", pointer()), on_box)
    assert resume_pointer.read(folder) is None


def test_what_the_box_mirrored_itself_is_kept(on_box: asks.RunOnBox, folder: Path) -> None:
    (folder / resume_pointer.FILE).write_bytes(codec.to_document(pointer(attempt=4)))
    assert not take_checkpoint.answer(asks.TakeCheckpoint("a", pointer()), on_box).is_new
    assert resume_pointer.read(folder) == pointer(attempt=4)


def test_asked_twice_it_says_the_same_of_the_box(on_box: asks.RunOnBox, folder: Path) -> None:
    for is_new in (True, False):
        question = asks.TakeCheckpoint("a", pointer())
        assert take_checkpoint.answer(question, on_box).is_new is is_new
    assert resume_pointer.read(folder) == pointer()


def test_nothing_is_written_behind_a_link(on_box: asks.RunOnBox, folder: Path) -> None:
    folder.rename(elsewhere := folder.with_name("elsewhere"))
    folder.symlink_to(elsewhere)
    with pytest.raises(InputError, match="symbolic link"):
        take_checkpoint.answer(asks.TakeCheckpoint("a", pointer()), on_box)
    assert resume_pointer.read(elsewhere) is None
