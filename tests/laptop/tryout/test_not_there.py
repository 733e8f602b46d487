from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from boxcar.laptop.tryout.code_copy import CodeCopy
from boxcar.laptop.tryout.one_try import Tried, hints_at_missing


@pytest.fixture
def tried(tmp_path: Path) -> Tried:
    """A project whose ignore file leaves data out, and that ships configs/."""
    (tmp_path / "p/data").mkdir(parents=True)
    (tmp_path / "p/data/train.bin").touch()
    (tmp_path / "p/helper.py").touch()
    (tmp_path / "p/tiny").mkdir()
    (tmp_path / "p/.boxcarignore").write_text("# what stays\n*.bin\nhelper.py\n")
    files = (SimpleNamespace(path="train.py"), SimpleNamespace(path="tiny/a.txt"))
    copy = CodeCopy(tmp_path / "copy", None, files)  # type: ignore[arg-type]
    return Tried(tmp_path / "p", copy, tmp_path / "out", is_in_out=False)


def missing(path: str | Path) -> list[str]:
    return ["...", f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'"]


def test_a_file_that_an_ignore_rule_leaves_out_is_named_with_the_rule(tried: Tried) -> None:
    (hint,) = hints_at_missing(missing("data/train.bin"), tried)
    assert hint.startswith(
        "data/train.bin is in your code folder but is not sent: .boxcarignore:2 (*.bin) excludes it"
    )
    assert "$BOXCAR_DATA_DIR" in hint
    assert hints_at_missing(missing(tried.copy.folder / "data/train.bin"), tried) == [hint]
    assert hints_at_missing(missing("./data/../data/train.bin") * 5, tried) == [hint]


def test_what_the_project_has_not_either_is_the_scripts_own_affair(tried: Tried) -> None:
    for path in ("none.bin", "/etc/none", "../p/data/train.bin", "."):
        assert hints_at_missing(missing(path), tried) == []
    assert hints_at_missing([], tried) == []


def test_other_libraries_words_and_modules_are_understood(tried: Tried) -> None:
    h5 = "OSError: unable to open file: name = 'data/train.bin', errno = 2, error message"
    assert "data/train.bin is in your code folder" in hints_at_missing([h5], tried)[0]
    module = "ModuleNotFoundError: No module named 'helper'"
    assert ".boxcarignore:3 (helper.py)" in hints_at_missing([module], tried)[0]


def test_a_package_at_the_top_of_the_code_is_told_how_it_is_found(tried: Tried) -> None:
    """As in minGPT, whose script lies in projects/ and imports a package beside that."""
    module = "ModuleNotFoundError: No module named 'tiny'"
    (hint,) = hints_at_missing([module], tried)
    assert "tiny is in the code folder, but Python looks beside the script:" in hint
    assert "env: {PYTHONPATH: .}" in hint
    assert hints_at_missing([module], replace(tried, is_in_out=True)) == [], "there it is found"
    assert hints_at_missing([module.replace("tiny", "torch")], tried) == []


def test_a_path_of_the_code_is_spelled_for_a_command_that_starts_in_out(tried: Tried) -> None:
    assert hints_at_missing(missing("tiny/a.txt"), tried) == []
    in_out = replace(tried, is_in_out=True)
    for path in ("tiny", tried.out / "tiny"):
        lines = missing(path)
        expected = [] if str(path).startswith("/") else ["write {code}/tiny"]
        assert [hint.rpartition(": ")[2] for hint in hints_at_missing(lines, in_out)] == expected
