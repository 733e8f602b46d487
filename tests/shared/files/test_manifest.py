from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.manifest import Difference, FileRecord, Manifest

CONTENT = {"best.pth": b"weights" * 1000, "samples/0001.png": b"pixels", "empty.csv": b""}


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    """The folder of a cell as it was published."""
    folder = tmp_path / "recon_baseline"
    for name, data in CONTENT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def records() -> tuple[FileRecord, ...]:
    return tuple(
        FileRecord(name, len(data), digest.of_bytes(data)) for name, data in CONTENT.items()
    )


def of_cell(**changes: Any) -> Manifest:
    base = Manifest(
        run="digits-ablation",
        cell="recon_baseline",
        queue="queue_1",
        box="box-a",
        release="3" * 64,
        attempt=1,
        task="reconstruction",
        cfg="configs/recon_baseline.yaml",
        epochs=20,
        started_at="2026-11-20T10:00:00.000Z",
        ended_at="2026-11-20T10:01:00.000Z",
        files=records(),
    )
    return dataclasses.replace(base, **changes)


# --- compare


def test_a_cell_that_is_as_it_was_published_has_no_difference(cell):
    (cell / "manifest.json").write_bytes(b"is not in itself")
    (cell / "something else").write_bytes(b"is nobody's business")
    assert manifest.compare(cell, records()) == []


def flip_one_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def replace_by_link_to_itself(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to("real")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_parent_by_file(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"")


DIFFERENCES = {
    "missing": ("best.pth", Path.unlink, "is missing"),
    "one bit": ("best.pth", flip_one_bit, "has SHA-256 "),
    "one bit below": ("samples/0001.png", flip_one_bit, "has SHA-256 "),
    "shorter": ("best.pth", lambda path: os.truncate(path, 6999), "is 6999 bytes, expected 7000"),
    "empty": ("best.pth", lambda path: os.truncate(path, 0), "is 0 bytes, expected 7000"),
    "longer": ("empty.csv", lambda path: path.write_bytes(b"\n"), "is 1 bytes, expected 0"),
    "link": ("best.pth", replace_by_link_to_itself, "is a symbolic link, expected a file"),
    "folder": ("best.pth", replace_by_folder, ""),
    "pipe": ("empty.csv", replace_by_pipe, ""),
    "no folder": ("samples/0001.png", replace_parent_by_file, "is missing"),
}


@pytest.mark.parametrize(
    ("name", "damage", "problem"), DIFFERENCES.values(), ids=DIFFERENCES.keys()
)
def test_each_difference_is_named_with_its_file(cell, name, damage, problem):
    damage(cell / name)
    [difference] = manifest.compare(cell, records())
    assert difference.path == name
    assert difference.problem.startswith(problem) and difference.problem


def test_a_flipped_byte_is_said_with_both_digests(cell):
    flip_one_bit(cell / "best.pth")
    [difference] = manifest.compare(cell, records())
    found, expected = digest.of_file(cell / "best.pth"), digest.of_bytes(CONTENT["best.pth"])
    assert difference.problem == f"has SHA-256 {found[:12]}…, expected {expected[:12]}…"


def test_a_folder_behind_a_link_is_not_believed(cell):
    (cell / "samples").rename(cell / "elsewhere")
    (cell / "samples").symlink_to("elsewhere")
    assert manifest.compare(cell, records()) == [
        Difference("samples/0001.png", "is a symbolic link, expected a file")
    ]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O")])
def test_a_file_that_cannot_be_read_is_a_difference(cell, monkeypatch, error):
    def refuse(_path: Path, *, from_disk: bool = False) -> str:
        raise error

    monkeypatch.setattr(digest, "of_file", refuse)
    assert manifest.compare_one(cell, records()[0]) == Difference(
        "best.pth", f"cannot be read: {error.strerror}"
    )


def test_a_name_that_the_disk_does_not_take_is_a_difference(cell):
    record = FileRecord("x" * 300, 0, digest.of_bytes(b""))
    assert manifest.compare_one(cell, record) == Difference(
        "x" * 300, "cannot be read: File name too long"
    )


def test_all_differences_are_found_in_one_go(cell):
    for name in CONTENT:
        (cell / name).unlink()
    assert [found.path for found in manifest.compare(cell, records())] == list(CONTENT)


def test_compare_does_not_follow_a_path_out_of_the_folder(cell):
    (cell.parent / "secret").write_bytes(b"x")
    with pytest.raises(DamagedError):
        manifest.compare(cell, (FileRecord("../secret", 1, digest.of_bytes(b"x")),))


# --- the document


def test_a_manifest_reads_as_it_was_written(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_bytes(codec.to_document(of_cell()))
    assert manifest.read_manifest(path) == of_cell()
    assert manifest.sha256(path) == digest.of_bytes(path.read_bytes())
    assert of_cell().size_bytes == 7006


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a//b", "", "a\0b", "\ud800"])
def test_a_manifest_that_names_a_file_outside_is_refused_when_it_is_read(name):
    hostile = of_cell(files=(*records(), FileRecord(name, 0, "0" * 64)))
    document = json.dumps(json.loads(codec.to_document(of_cell())) | codec.encode(hostile))
    with pytest.raises(DamagedError, match=r"^there/manifest\.json: "):
        manifest.parse_manifest(document.encode(), "there/manifest.json")
