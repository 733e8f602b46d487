from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from boxcar.shared.disk import sink
from boxcar.training.checkpoint import checkpoint_file

VALUES = torch.arange(600_000.0)


def test_what_torch_saves_is_what_it_saves_into_a_file_of_its_own(tmp_path: Path) -> None:
    pieces = bytearray()
    with checkpoint_file.create_torch_file(tmp_path / "x.pth", pieces.extend) as file:
        torch.save(VALUES, file)  # type: ignore[arg-type]
    data = (tmp_path / "x.pth").read_bytes()
    assert file.tell() == file.size_bytes == len(data)
    assert pieces == data
    assert torch.load(tmp_path / "x.pth", weights_only=True).equal(VALUES)


def test_the_disk_begins_before_the_end_and_has_it_all_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "PART_BYTES", 1024 * 1024)
    seen: list[str] = []
    monkeypatch.setattr(sink, "begin", lambda *_: seen.append("begun"))
    monkeypatch.setattr(os, "fsync", lambda _: seen.append("all"))
    with checkpoint_file.create_torch_file(tmp_path / "x.pth") as file:
        torch.save(VALUES, file)  # type: ignore[arg-type]
    assert seen == ["begun", "begun", "all"]


def test_what_the_disk_said_is_raised_and_not_what_torch_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with (
        pytest.raises(OSError, match="No space left"),
        checkpoint_file.create_torch_file(tmp_path / "x.pth") as file,
    ):
        torch.save(VALUES, file)  # type: ignore[arg-type]


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "x.pth").write_bytes(b"old")
    with pytest.raises(FileExistsError), checkpoint_file.create_torch_file(tmp_path / "x.pth"):
        pass
    assert (tmp_path / "x.pth").read_bytes() == b"old"
