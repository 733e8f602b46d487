from __future__ import annotations

from pathlib import Path

from journal_lines import chained, events, v1_lines

from boxcar.shared.files import journal
from boxcar.shared.files.journal_repair import from_copy, problem

V2 = Path(__file__).parents[2] / "data" / "v2"
DATA = (V2 / "journal.jsonl").read_bytes()
END = journal.parse_journal(DATA, "here").end
LINES = DATA.splitlines(keepends=True)


def test_a_copy_puts_back_what_it_has_and_newer_lines_are_kept() -> None:
    bad = b"".join([*LINES[:3], b"rubbish\n", b"more rubbish\n", *LINES[5:]])
    assert from_copy(bad, DATA, [END]) == DATA
    assert from_copy(bad, b"".join(LINES[:7]), [END]) == DATA
    assert from_copy(bad, b"".join(LINES[:5]), [END]) == DATA
    assert from_copy(bad, b"".join(LINES[:4]), [END]) is None, "it has no copy of the fifth line"


def test_a_tail_comes_back_from_a_copy_that_has_it() -> None:
    cut = b"".join(LINES[:5])
    assert problem(cut, [END], "here") == "it ends after event 5: its last 9 events are missing"
    assert from_copy(cut, DATA, [END]) == DATA
    assert from_copy(cut, b"".join(LINES[:9]), [END]) is None
    assert from_copy(b"", DATA, [END]) == DATA


def test_a_copy_of_another_history_is_not_put_back() -> None:
    bad = b"".join([*LINES[:3], b"rubbish\n", *LINES[4:]])
    other = chained(events(20))
    assert from_copy(bad, other, []) is None
    assert from_copy(bad, b"", []) is None


def test_lines_of_version_1_come_back_from_a_copy_that_the_first_new_line_covers() -> None:
    old = v1_lines(events(4))
    data = old + chained(events(3, first=5), journal.parse_journal(old, "here").end.check)
    bad = data.replace(b'"c2"', b'"c3"', 1)
    assert problem(bad, [], "here")
    assert from_copy(bad, old, []) == data
