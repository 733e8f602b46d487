from __future__ import annotations

import json
import os

import pytest

from boxcar.shared.files import progress
from onbox.judging import progress_tail


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
