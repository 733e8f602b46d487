from __future__ import annotations

import os
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from boxcar.shared.errors import DamagedError, InputError, NoRoomError
from boxcar.training.checkpoint import checkpoint_file

CONTENT = {"format": checkpoint_file.FORMAT, "step": 3, "w": torch.arange(10_000.0)}


def written(path: Path) -> Path:
    checkpoint_file.write(path, CONTENT)
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = checkpoint_file.read(written(tmp_path / "x.pth"))
    assert (found["step"], found["w"].tolist()) == (3, CONTENT["w"].tolist())  # type: ignore[attr-defined]
    assert os.listdir(tmp_path) == ["x.pth"]  # noqa: PTH208


def test_every_truncation_is_damage(tmp_path: Path) -> None:
    whole = written(tmp_path / "x.pth").read_bytes()
    for size in [*range(1, 64, 7), *range(64, len(whole), 2011), len(whole) - 1]:
        (tmp_path / "cut.pth").write_bytes(whole[:size])
        if size >= 4:  # fewer bytes could be the beginning of anything
            with pytest.raises(DamagedError, match=r"cut\.pth: "):
                checkpoint_file.read(tmp_path / "cut.pth")


def test_flipped_bits_of_tensors_are_damage(tmp_path: Path) -> None:
    whole = written(tmp_path / "x.pth").read_bytes()
    for at in range(2000, len(whole) - 3000, 1009):
        data = bytearray(whole)
        data[at] ^= 1 << at % 8
        (tmp_path / "flipped.pth").write_bytes(data)
        with pytest.raises(DamagedError):
            checkpoint_file.read(tmp_path / "flipped.pth")


def pickled_tensor(path: Path) -> None:
    torch.save({"w": torch.ones(2)}, path, _use_new_zipfile_serialization=False)


def evil(path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (path.with_name("ran"),)

    torch.save({"format": checkpoint_file.FORMAT, "x": Evil()}, path)


def tar_of(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        archive.add(__file__)


def zip_of(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(__file__, "x")


FOREIGN = {
    "a state dict": lambda path: torch.save({"w": torch.ones(2)}, path),
    "a tensor": lambda path: torch.save(torch.ones(2), path),
    "best": lambda path: torch.save({"format": checkpoint_file.BEST_FORMAT}, path),
    "legacy": pickled_tensor,
    "code": evil,
    "pickle": lambda path: path.write_bytes(pickle.dumps({"a": 1})),
    "tar": tar_of,
    "zip": zip_of,
    "text": lambda path: path.write_text("hello"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_another_programs_file_is_not_damage_but_a_persons_matter(
    tmp_path: Path, kind: str
) -> None:
    FOREIGN[kind](tmp_path / "x.pth")
    with pytest.raises(InputError, match=r"x\.pth: is not a checkpoint of boxcar\.training"):
        checkpoint_file.read(tmp_path / "x.pth")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"PK\x03\x04" + b"\0" * 5000])
def test_what_a_crash_leaves_is_damage(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pth").write_bytes(content)
    with pytest.raises(DamagedError, match="is cut off"):
        checkpoint_file.read(tmp_path / "x.pth")


def test_a_write_that_the_system_cuts_short_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Linux does beyond 2 GiB; torch believes that all of it was written."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:1000]))
    written(tmp_path / "x.pth")
    assert torch.equal(checkpoint_file.read(tmp_path / "x.pth")["w"], CONTENT["w"])


def test_a_limit_on_a_files_size_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "x.pth")

    def too_large(*_: Any) -> int:
        raise OSError(27, "File too large")

    monkeypatch.setattr(os, "write", too_large)
    with pytest.raises(NoRoomError, match=r"x\.pth: about \d+ bytes are needed.*File too large"):
        checkpoint_file.write(tmp_path / "x.pth", {"format": checkpoint_file.FORMAT})
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["x.pth"]  # noqa: PTH208
    assert checkpoint_file.read(tmp_path / "x.pth")["step"] == 3


def test_the_size_is_known_before_and_shared_storages_count_once(tmp_path: Path) -> None:
    weights = torch.ones(1_000_000)
    content = {"a": weights, "b": [weights, weights[:10]], "c": {"d": torch.ones(250_000)}}
    checkpoint_file.write(tmp_path / "x.pth", content)
    expected = (tmp_path / "x.pth").stat().st_size
    assert expected <= checkpoint_file.size_bytes(content) <= expected + 300_000


def test_a_link_is_replaced_also_by_itself(tmp_path: Path) -> None:
    one, two = written(tmp_path / "1.pth"), written(tmp_path / "2.pth")
    for source in (one, two, two):
        checkpoint_file.link(source, tmp_path / "latest.pth")
        assert (tmp_path / "latest.pth").samefile(source)
    assert sorted(os.listdir(tmp_path)) == ["1.pth", "2.pth", "latest.pth"]  # noqa: PTH208
