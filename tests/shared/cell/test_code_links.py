from __future__ import annotations

from pathlib import Path

from boxcar.shared.cell import said


def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    out, code, aside = tmp_path / "out", tmp_path / "code", tmp_path / "aside"
    out.mkdir()
    (code / "sets" / "cifar").mkdir(parents=True)
    return out, code, aside


def test_each_name_leads_to_its_folder_of_the_code(tmp_path: Path) -> None:
    out, code, aside = folders(tmp_path)
    assert said.place(out, code, {"data": "sets/cifar", "sets": "sets"}, aside) == []
    assert (out / "data").readlink() == code / "sets" / "cifar"
    assert (out / "sets" / "cifar").is_dir() and not aside.exists()


def test_of_another_release_they_lead_to_the_code_of_this_attempt(tmp_path: Path) -> None:
    out, code, aside = folders(tmp_path)
    (out / "data").symlink_to(tmp_path / "gone")
    assert said.place(out, code, {"data": "sets"}, aside) == []
    assert (out / "data").readlink() == code / "sets"


def test_what_an_attempt_left_in_the_place_of_one_is_kept(tmp_path: Path) -> None:
    out, code, aside = folders(tmp_path)
    (out / "data").mkdir()
    (out / "data" / "own.txt").write_text("mine")
    [moved] = said.place(out, code, {"data": "sets"}, aside)
    assert moved.parent == aside and (moved / "own.txt").read_text() == "mine"
    assert (out / "data").readlink() == code / "sets"


def test_a_file_in_the_place_of_one_is_kept_too(tmp_path: Path) -> None:
    out, code, aside = folders(tmp_path)
    (out / "data").write_text("mine")
    [moved] = said.place(out, code, {"data": "sets"}, aside)
    assert moved.parent == aside and moved.read_text() == "mine"
    assert (out / "data").readlink() == code / "sets"
