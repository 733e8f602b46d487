"""The ends of logs and of progress."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from boxcar.shared.files import codec, progress
from boxcar.shared.files.attempt import Running
from boxcar.shared.paths import ScratchPaths
from onbox.judging import log_tail, progress_tail

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


def test_it_begins_where_the_attempt_began_whatever_a_script_prints(scratch):
    note(scratch, len(FIRST))
    assert log_tail.read(scratch, "a").text == SECOND


def test_colours_are_no_part_of_what_a_script_said(scratch):
    scratch.log("a").write_bytes(b"Error: \x1b[1mdo those\x1b[0m steps\x1b[2K [31m\n")
    assert log_tail.read(scratch, "a").text == "Error: do those steps [31m\n"


def test_the_end_of_a_long_log_is_enough(scratch):
    note(scratch, len(FIRST))
    scratch.log("a").write_bytes(b"x" * (2 * log_tail.LONGEST_BYTES) + b"end")
    assert len(log_tail.read(scratch, "a").text) == log_tail.LONGEST_BYTES
    assert log_tail.read(scratch, "a").text.endswith("xend")


@pytest.mark.parametrize("record", [V1.read_bytes(), b"{", None], ids=["v1", "damaged", "none"])
def test_where_nobody_knows_the_beginning_the_whole_tail_is_looked_at(scratch, record):
    if record is not None:
        scratch.running("a").write_bytes(record)
    assert log_tail.read(scratch, "a").text == FIRST + SECOND


def test_a_log_that_was_cut_is_looked_at_whole(scratch):
    note(scratch, 10_000)
    assert log_tail.read(scratch, "a").text == FIRST + SECOND


def test_without_a_log_there_are_no_words(tmp_path):
    assert log_tail.read(ScratchPaths(tmp_path, "run"), "a").text == ""


def test_it_says_which_line_of_the_log_it_begins_with(scratch):
    note(scratch, len(FIRST))
    assert log_tail.read(scratch, "a").begins_at_line == 3
    scratch.log("a").write_bytes(b"a line\n" * (log_tail.LONGEST_BYTES // 7 + 10))
    tail = log_tail.read(scratch, "a")
    assert tail.begins_at_line + tail.text.count("\n") == log_tail.LONGEST_BYTES // 7 + 11


# --- progress


def write(out, text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    (out / progress.FILE).write_bytes(data)


def test_the_newest_whole_line_is_the_progress(tmp_path):
    write(tmp_path, '{"step": 1}\n{"step": 2, "epoch": 1, "loss": 0.5, "phase": "train"}\n')
    assert progress_tail.last(tmp_path) == {"step": 2, "epoch": 1, "loss": 0.5, "phase": "train"}


def test_a_line_that_is_still_being_written_does_not_count(tmp_path):
    write(tmp_path, '{"step": 1}\n{"step": 2}')
    assert progress_tail.last(tmp_path) == {"step": 1}


@pytest.mark.parametrize("bad", ["not json", "[1, 2]", "7", "", '{"step": ', "\0\0", "[" * 5000])
def test_what_is_no_object_is_passed_over(tmp_path, bad):
    write(tmp_path, f'{{"step": 1}}\n{bad}\n')
    assert progress_tail.last(tmp_path) == {"step": 1}


def test_bytes_that_are_no_text_are_passed_over(tmp_path):
    write(tmp_path, b'{"step": 1}\n\xff\xfe\n')
    assert progress_tail.last(tmp_path) == {"step": 1}


def test_only_the_end_of_a_long_file_is_read(tmp_path):
    write(tmp_path, "".join(f'{{"step": {step}}}\n' for step in range(200_000)))
    assert progress_tail.last(tmp_path) == {"step": 199_999}


def test_a_line_that_is_too_long_is_no_progress(tmp_path):
    write(tmp_path, json.dumps({"step": 1, "text": "x" * 100_000}) + "\n")
    assert progress_tail.last(tmp_path) == {}


def test_only_numbers_and_short_texts_are_taken_and_not_too_many(tmp_path):
    record = {"step": 1, "long": "x" * 201, "list": [1], "map": {"a": 1}, "none": None}
    write(tmp_path, json.dumps(record | {f"f{number}": number for number in range(50)}) + "\n")
    found = progress_tail.last(tmp_path)
    assert found["step"] == 1
    assert len(found) <= 20
    assert not {"long", "list", "map", "none"} & set(found)


def test_a_number_that_json_does_not_know_is_told_as_a_text(tmp_path):
    write(tmp_path, '{"step": 3, "loss": NaN, "grad": -Infinity}\n')
    assert progress_tail.last(tmp_path) == {"step": 3, "loss": "nan", "grad": "-inf"}


def test_no_file_is_no_progress(tmp_path):
    assert progress_tail.last(tmp_path) == {}
    assert progress_tail.last(tmp_path / "not there") == {}
    write(tmp_path, "")
    assert progress_tail.last(tmp_path) == {}
    (tmp_path / progress.FILE).unlink()
    (tmp_path / progress.FILE).mkdir()
    assert progress_tail.last(tmp_path) == {}


def test_a_pipe_in_its_place_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / progress.FILE)
    assert progress_tail.last(tmp_path) == {}


def test_a_link_is_followed_inside_the_cell_only(tmp_path):
    out = tmp_path / "out"
    (out / "logs").mkdir(parents=True)
    (out / "logs" / "lines").write_text('{"step": 1}\n')
    (tmp_path / "other").write_text('{"step": 2}\n')
    (out / progress.FILE).symlink_to("logs/lines")
    assert progress_tail.last(out) == {"step": 1}
    (out / progress.FILE).unlink()
    (out / progress.FILE).symlink_to("../other")
    assert progress_tail.last(out) == {}
