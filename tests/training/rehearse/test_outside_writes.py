from __future__ import annotations

from pathlib import Path
from typing import Any

from boxcar.training.rehearse import outside_writes
from boxcar.training.rehearse.outside_writes import Outside, Places

KNOWN = Places(home="/home/me", temp="/tmp", caches=("/big/inductor",))


def note(path: str, what: str = "written", by: str = "", was_there: bool = False) -> dict[str, Any]:
    return {"path": path, "what": what, "by": by, "was_there": was_there}


def judge(*notes: dict[str, Any], there: bool = True) -> dict[str, Outside]:
    known = dict.fromkeys((item["path"] for item in notes), there)
    return {item.path: item for item in outside_writes.judge(notes, known, KNOWN)}


def test_a_file_that_is_there_afterwards_counts_with_its_line() -> None:
    found = judge(note("/code/cache.pt", by="/code/train.py:3"))
    assert found == {"/code/cache.pt": Outside("/code/cache.pt", "written", "/code/train.py:3")}


def test_what_cannot_be_depended_on_is_told_apart() -> None:
    reasons = {
        "/code/__pycache__/x.1": "compiled Python",
        "/code/x.pyc": "compiled Python",
        "/home/me/.cache/torch/x": "a cache",
        "/big/inductor/fx/1": "a cache",
        "/tmp/torchinductor_me/x": "a temporary file of torch's or Python's",
    }
    assert {p: judge(note(p))[p].harmless for p in reasons} == reasons
    own = judge(note("/tmp/tmpabc", "temporary"), note("/tmp/tmpabc/deep/x"))
    assert {item.harmless for item in own.values()} == {"a temporary file with a name of its own"}


def test_a_fixed_name_in_the_temporary_folder_counts() -> None:
    assert judge(note("/tmp/data.pt"))["/tmp/data.pt"].harmless == ""


def test_what_was_made_and_removed_again_does_not_count_but_a_removal_does() -> None:
    made = [note("/d/x.part"), note("/d/x.part", "removed", was_there=True)]
    assert judge(*made, there=False)["/d/x.part"].harmless == "removed again"
    removed = judge(note("/d/x", "removed", was_there=True), there=False)["/d/x"]
    assert (removed.what, removed.harmless) == ("removed", "")


def test_notes_that_a_kill_cut_are_left_out(tmp_path: Path) -> None:
    notes = tmp_path / "writes.jsonl"
    assert outside_writes.read_notes(notes) == []
    notes.write_text('{"path": "/a", "what": "made", "by": ""}\n{"path": "/')
    assert [item["path"] for item in outside_writes.read_notes(notes)] == ["/a"]
