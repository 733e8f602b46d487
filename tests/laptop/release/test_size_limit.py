from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.release import code_files
from boxcar.shared.errors import InputError


def test_code_of_a_usual_size_is_no_problem() -> None:
    assert code_files.size_problem([("train.py", 10**4), ("data/digits.npz", 10**8)]) == ""
    assert code_files.size_problem([(f"{n}.py", 1) for n in range(code_files.MOST_FILES)]) == ""


def test_too_many_bytes_name_the_largest_folders_and_files() -> None:
    sizes = [("train.py", 10**4), ("data/train/a.bin", 150 * 10**6), ("w.pth", 90 * 10**6)]
    problem = code_files.size_problem(sizes)
    assert problem.startswith("240.0 MB would be sent as code; the limit is 200.0 MB.")
    assert "data/train/ (150.0 MB)" in problem
    assert "w.pth (90.0 MB)" in problem
    assert code_files.size_problem([("a", code_files.MOST_BYTES)]) == ""
    assert code_files.size_problem([("a", code_files.MOST_BYTES + 1)]) != ""


def test_too_many_files_name_the_folders_that_hold_them() -> None:
    sizes = [(f"data/images/{n}/x.png", 1) for n in range(code_files.MOST_FILES)]
    problem = code_files.size_problem([*sizes, ("train.py", 1)])
    assert problem.startswith("20001 files would be sent as code; the limit is 20000:")
    assert "data/images/ (20000 files)" in problem


def test_a_large_file_is_refused_with_the_way_out_until_it_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    with (tmp_path / "weights.pth").open("wb") as file:
        file.truncate(code_files.MOST_BYTES + 1)  # takes no room
    with pytest.raises(InputError) as caught:
        code_files.take_snapshot(tmp_path)
    assert "weights.pth (200.0 MB)" in str(caught.value)
    assert "add it to .boxcarignore" in str(caught.value)
    (tmp_path / ".boxcarignore").write_text("*.pth\n")
    assert len(code_files.take_snapshot(tmp_path).files) == 2


def test_links_count_as_what_they_are_shipped_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_files, "MOST_BYTES", 10)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"123456")
    assert len(code_files.take_snapshot(tmp_path).files) == 1
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="would be sent as code;"):
        code_files.take_snapshot(tmp_path)


def test_of_very_many_files_not_each_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_files, "MOST_FILES", 3)
    monkeypatch.setattr(code_files, "MOST_LOOKED_AT", 6)
    for number in range(9):
        (tmp_path / f"{number}.png").touch()
    with pytest.raises(InputError, match="6 files or more would be sent"):
        code_files.take_snapshot(tmp_path)
    (tmp_path / ".gitignore").write_text("*.png\n")
    assert [file.path for file in code_files.take_snapshot(tmp_path).files] == [".gitignore"]
