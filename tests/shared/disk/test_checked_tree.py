from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import atomic, checked_tree, digest
from boxcar.shared.disk.checked_tree import ToCopy, copy_all
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files.manifest import FileRecord

NAMES = [f"part_{number % 3}/{number:02d}.json" for number in range(12)]
LARGE = "weights.pth"


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    """Small files in folders, an empty one, and one that is worth a copy of its own."""
    found = {name: tmp_path / "scratch" / name for name in (*NAMES, "empty", LARGE)}
    for name, path in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name == "empty" else os.urandom(500 + len(name)))
    found[LARGE].write_bytes(os.urandom(digest.BLOCK_BYTES + 3))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "durable"
    path.mkdir()
    return path


def to_copy(sources: dict[str, Path], folder: Path) -> list[ToCopy]:
    return [ToCopy(source, folder / name, name) for name, source in sources.items()]


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_every_file_is_there_and_its_record_says_what_it_is(
    sources: dict[str, Path], folder: Path
) -> None:
    told: list[int] = []
    records = copy_all(folder, to_copy(sources, folder), told.append)
    expected = {name: path.read_bytes() for name, path in sources.items()}
    assert [record.path for record in records] == list(expected)
    assert records == tuple(
        FileRecord(name, len(data), digest.of_bytes(data)) for name, data in expected.items()
    )
    assert files_below(folder) == set(expected)
    assert all((folder / name).read_bytes() == data for name, data in expected.items())
    assert sum(told) == 2 * sum(map(len, expected.values())), "written, and read back"


@pytest.mark.parametrize("at_once", [1, 5, 2000])
def test_any_number_at_once_ends_the_same(
    sources: dict[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(checked_tree, "_MOST_AT_ONCE", at_once)
    copy_all(folder, to_copy(sources, folder))
    assert files_below(folder) == set(sources)


def test_a_flipped_bit_in_one_of_them_keeps_all_from_their_names(
    sources: dict[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del sources[LARGE]
    of_file = digest.of_file

    def damaged(path: Path, **options: Any) -> str:
        if path.name.startswith(".07.json"):
            data = bytearray(path.read_bytes())
            data[100] ^= 4
            path.write_bytes(data)
        return of_file(path, **options)

    monkeypatch.setattr(digest, "of_file", damaged)
    with pytest.raises(DamagedError, match=r"07\.json.* did not read back"):
        copy_all(folder, to_copy(sources, folder))
    assert files_below(folder) == set()


def test_nothing_is_read_back_or_named_before_all_is_durable(
    sources: dict[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del sources[LARGE]
    steps: list[str] = []
    forget, replace = digest.forget_cached_pages, Path.replace

    def durable(_self: object, files: list[Path], *_rest: object) -> None:
        steps.append("files" if files else "names")

    monkeypatch.setattr(checked_tree.TreeSync, "make_durable", durable)
    monkeypatch.setattr(
        digest, "forget_cached_pages", lambda fd, *_: (steps.append("read"), forget(fd))
    )
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (steps.append("name"), replace(self, to))[1]
    )
    copy_all(folder, to_copy(sources, folder))
    count = len(sources)
    assert steps == ["files", *["read"] * count, *["name"] * count, "names"]


def test_a_source_that_is_not_there_leaves_nothing_unfinished(
    sources: dict[str, Path], folder: Path
) -> None:
    files = to_copy(sources, folder)
    sources[NAMES[5]].unlink()
    with pytest.raises(FileNotFoundError):
        copy_all(folder, files)
    assert not any(atomic.is_temporary(path.name) for path in folder.rglob("*"))


def test_a_full_disk_is_said_and_nothing_is_left_there(
    sources: dict[str, Path], small_disk: Callable[[str], Path]
) -> None:
    disk = small_disk("size=16k")
    with pytest.raises(NoRoomError, match="No space left"):
        copy_all(disk, to_copy(sources, disk))
    assert files_below(disk) == set()


def test_what_lay_there_is_replaced(sources: dict[str, Path], folder: Path) -> None:
    (folder / "empty").write_text("old")
    copy_all(folder, to_copy(sources, folder))
    assert (folder / "empty").read_bytes() == b""
