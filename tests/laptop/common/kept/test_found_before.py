from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.common.kept import found_before
from boxcar.laptop.common.kept.found_before import FoundBefore, digest_of_stamps

ROOT = Path(__file__).parents[4]
YEAR_NS = 365 * 24 * 3600 * 10**9


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "found" / "run.json"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files were written long ago."""
    now_ns = found_before.time.time_ns
    monkeypatch.setattr(found_before.time, "time_ns", lambda: now_ns() + YEAR_NS)


def asked(path: Path | None, of: str, is_so: bool, what: str = "settled") -> tuple[bool, bool]:
    """Whether it holds, and whether it was found out anew."""
    finds: list[bool] = []

    def find() -> bool:
        finds.append(True)
        return is_so

    return FoundBefore(path).holds(what, lambda: of, find), bool(finds)


def test_what_held_of_the_same_is_not_found_out_again(path: Path) -> None:
    assert asked(path, "one", True) == (True, True)
    assert asked(path, "one", False) == (True, False)
    assert asked(path, "other", False) == (False, True)
    assert asked(path, "one", False, "beside") == (False, True)


def test_what_did_not_hold_is_found_out_each_time(path: Path) -> None:
    assert asked(path, "one", False) == (False, True)
    assert asked(path, "one", True) == (True, True)


@pytest.mark.parametrize("of", ["one", ""])
def test_what_cannot_be_known_again_is_found_out_each_time(path: Path, of: str) -> None:
    there = None if of else path
    assert asked(there, of, True) == (True, True)
    assert asked(there, of, False) == (False, True)


@pytest.mark.parametrize("damage", [b"", b"\0", b"x"])
def test_a_damaged_one_is_as_none(path: Path, damage: bytes) -> None:
    asked(path, "one", True)
    data = path.read_bytes()
    path.write_bytes(damage + data[1:] if damage else data[:-1])
    assert asked(path, "one", False) == (False, True)


def changes(folder: Path) -> dict[str, Any]:
    def rewrite() -> None:
        before = (folder / "a/m").stat()
        (folder / "a/m").write_bytes(b"two")
        os.utime(folder / "a/m", ns=(before.st_atime_ns, before.st_mtime_ns))

    def replace() -> None:
        (folder / "new").write_bytes(b"one")
        (folder / "new").replace(folder / "a/m")

    return {
        "rewritten": rewrite,
        "replaced": replace,
        "removed": (folder / "a/m").unlink,
        "there": lambda: (folder / "b/m").write_bytes(b""),
    }


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("change", ["rewritten", "replaced", "removed", "there"])
def test_files_that_were_changed_have_another_digest(tmp_path: Path, change: str) -> None:
    for cell in "ab":
        (tmp_path / cell).mkdir()
    (tmp_path / "a/m").write_bytes(b"one")
    names = ["a/m", "b/m"]
    before = digest_of_stamps(tmp_path, names)
    assert before == digest_of_stamps(tmp_path, names) != ""
    changes(tmp_path)[change]()
    assert digest_of_stamps(tmp_path, names) != before


@pytest.mark.usefixtures("later")
def test_a_folder_in_which_a_file_was_replaced_has_another_digest(tmp_path: Path) -> None:
    for name in ("cell/m", "new"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"one")
    before = digest_of_stamps(tmp_path, ["cell"])
    (tmp_path / "new").replace(tmp_path / "cell/m")
    assert digest_of_stamps(tmp_path, ["cell"]) != before != ""


def test_a_file_that_was_just_written_has_none(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"one")
    assert digest_of_stamps(tmp_path, ["m"]) == ""


@pytest.mark.usefixtures("later")
def test_a_file_from_before_1970_has_none(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"one")
    os.utime(tmp_path / "m", (-5, -5))
    assert digest_of_stamps(tmp_path, ["m"]) == ""


def test_only_advice_has_it() -> None:
    modules = [path for room in ("boxcar", "onbox") for path in (ROOT / room).rglob("*.py")]
    users = {path.stem for path in modules if "found_before import" in path.read_text()}
    assert users == {"settled"}
    askers = {path.stem for path in modules if "settled import Settled" in path.read_text()}
    assert askers == {"next_step", "verify"}, "of which one only remembers: see test_settled.py"
