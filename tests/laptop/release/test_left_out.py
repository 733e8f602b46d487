from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from boxcar.laptop.release import code_files, left_out_files
from boxcar.laptop.release.left_out_files import find_left_out


@pytest.fixture(params=["git", "no git"])
def code(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with code, and data that its .gitignore names."""
    if request.param == "git":
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    sizes = {
        "train.py": 3,
        "data/a/x.bin": 700,
        "data/a/b/y.bin": 300,
        "w.pt": 50,
    }
    for name, size in sizes.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    (tmp_path / ".gitignore").write_text("\n*.bin\n*.pt\n__pycache__/\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/train.pyc").write_bytes(b"x")
    return tmp_path


def found(code: Path) -> list[tuple[str, int, str]]:
    shipped = frozenset(code_files.take_snapshot(code).names)
    return [(row.name, row.size_bytes, row.rule) for row in find_left_out(code, shipped)]


def test_what_ignore_rules_keep_is_named_with_size_and_line_the_largest_first(code: Path) -> None:
    assert found(code) == [
        ("data/a/*.bin", 1000, ".gitignore:2 (*.bin)"),
        ("w.pt", 50, ".gitignore:3 (*.pt)"),
    ]


def test_a_boxcarignore_is_the_one_that_counts(code: Path) -> None:
    (code / ".boxcarignore").write_text("data/\n")
    assert found(code) == [("data/a/*.bin", 1000, ".boxcarignore:1 (data/)")]


def test_what_is_not_counted_to_its_end_is_said_to_be_more(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_out_files, "MOST_FILES_LOOKED_AT", 1)
    rows = find_left_out(code, frozenset(code_files.take_snapshot(code).names))
    assert [row.is_more for row in rows] == [True]


def test_of_very_many_folders_only_the_largest_are_asked_about(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_out_files, "MOST_ROWS", 1)
    assert [name for name, _, _ in found(code)] == ["data/a/*.bin"]
