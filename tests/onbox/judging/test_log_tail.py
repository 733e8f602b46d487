from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Running
from boxcar.shared.paths import ScratchPaths
from onbox.judging import log_tail

FIRST = "=== attempt 1 at a, then ===\nOSError: of the first\n"
SECOND = "KeyError: of the second\n=== attempt 9 at a, which a script may print ===\nlast words\n"
V1 = Path(__file__).parents[2] / "data" / "v1" / "running.json"


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchPaths:
    found = ScratchPaths(tmp_path, "run")
    found.cell("a").mkdir(parents=True)
    found.log("a").write_text(FIRST + SECOND)
    return found


def note(scratch: ScratchPaths, begins_at_bytes: int) -> None:
    running = Running("a", 2, 1, "1", "boot", "2026-11-21T02:00:00.000Z", begins_at_bytes)
    scratch.running("a").write_bytes(codec.to_document(running))


def test_it_begins_where_the_attempt_began_whatever_a_script_prints(scratch: ScratchPaths) -> None:
    note(scratch, len(FIRST))
    assert log_tail.read(scratch, "a").text == SECOND


def test_colours_are_no_part_of_what_a_script_said(scratch: ScratchPaths) -> None:
    scratch.log("a").write_bytes(b"Error: \x1b[1mdo those\x1b[0m steps\x1b[2K [31m\n")
    assert log_tail.read(scratch, "a").text == "Error: do those steps [31m\n"


def test_the_end_of_a_long_log_is_enough(scratch: ScratchPaths) -> None:
    note(scratch, len(FIRST))
    scratch.log("a").write_bytes(b"x" * (2 * log_tail.LONGEST_BYTES) + b"end")
    assert len(log_tail.read(scratch, "a").text) == log_tail.LONGEST_BYTES
    assert log_tail.read(scratch, "a").text.endswith("xend")


@pytest.mark.parametrize("record", [V1.read_bytes(), b"{", None], ids=["v1", "damaged", "none"])
def test_where_nobody_knows_the_beginning_the_whole_tail_is_looked_at(
    scratch: ScratchPaths, record: bytes | None
) -> None:
    if record is not None:
        scratch.running("a").write_bytes(record)
    assert log_tail.read(scratch, "a").text == FIRST + SECOND


def test_a_log_that_was_cut_is_looked_at_whole(scratch: ScratchPaths) -> None:
    note(scratch, 10_000)
    assert log_tail.read(scratch, "a").text == FIRST + SECOND


def test_without_a_log_there_are_no_words(tmp_path: Path) -> None:
    assert log_tail.read(ScratchPaths(tmp_path, "run"), "a").text == ""


def test_it_says_which_line_of_the_log_it_begins_with(scratch: ScratchPaths) -> None:
    note(scratch, len(FIRST))
    assert log_tail.read(scratch, "a").begins_at_line == 3
    scratch.log("a").write_bytes(b"a line\n" * (log_tail.LONGEST_BYTES // 7 + 10))
    tail = log_tail.read(scratch, "a")
    assert tail.begins_at_line + tail.text.count("\n") == log_tail.LONGEST_BYTES // 7 + 11
