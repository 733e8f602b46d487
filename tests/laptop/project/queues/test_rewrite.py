from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.laptop.project.queues import rewrite
from boxcar.laptop.project.queues.rewrite import blocks, rewritten
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import queue_line

ONE = b"""# Queue one, on box-a.
# Lines are only appended.

# the baseline
c/a.yaml recon 5
# commented out: c/x.yaml recon
'c/b.yaml'  recon   # no, this is a field
c/d.yaml det
# the end
"""
# Without the line that is none: what `plan` refuses is never rewritten.
ONE = ONE.replace(b"   # no, this is a field", b"")
TWO = b"c/e.yaml seg\r\n\r\n# about f\r\nc/f.yaml seg"


def test_comments_travel_with_the_cell_below_them_and_the_top_and_end_stay() -> None:
    found = rewritten({"one": ONE, "two": TWO}, {"one": ["d", "f"], "two": ["e", "a", "b"]})
    assert found["one"].decode().split("\n") == [
        "# Queue one, on box-a.",
        "# Lines are only appended.",
        "",
        "c/d.yaml det",
        "",
        "# about f",
        "c/f.yaml seg",
        "# the end",
        "",
    ]
    assert found["two"].decode().split("\n") == [
        "# the baseline",
        "c/a.yaml recon 5",
        "# commented out: c/x.yaml recon",
        "'c/b.yaml'  recon",
        "c/e.yaml seg",
        "",
    ]


def test_cells_that_stay_where_they_are_change_no_byte() -> None:
    assert rewritten({"one": ONE}, {"one": ["d", "b", "a"]}) == {"one": ONE}


def test_a_queue_may_become_empty_and_an_empty_one_may_fill() -> None:
    found = rewritten(
        {"one": b"# top\nc/a.yaml recon\n", "two": b"# mine\n"}, {"one": [], "two": ["a"]}
    )
    assert found == {"one": b"# top\n", "two": b"# mine\nc/a.yaml recon\n"}


LINES = st.sampled_from(["", "# note", "#", "  # c/no.yaml x", "# odd \r note"])


@given(
    st.lists(st.lists(st.tuples(LINES, st.integers(0, 2))), min_size=1, max_size=3),
    st.booleans(),
)
def test_no_cell_and_no_comment_is_lost_or_doubled(
    shape: list[list[tuple[str, int]]], ends: bool
) -> None:
    files, wanted, number = {}, {f"q{n}": [] for n in range(len(shape))}, 0
    for at, rows in enumerate(shape):
        text = ""
        for comment, to in rows:
            text += f"{comment}\nc/cell{number}.yaml task\n"
            wanted[f"q{to % len(shape)}"].append(f"cell{number}")
            number += 1
        files[f"q{at}"] = (text if ends else text[:-1]).encode()
    found = rewritten(files, wanted)
    for name, data in found.items():
        names = [line.name for line in queue_line.parse_queue(data).cells]
        assert sorted(names) == sorted(wanted[name])
    before = b"".join(
        data if data.endswith(b"\n") or not data else data + b"\n" for data in files.values()
    )
    assert sorted(b"".join(found.values()).split(b"\n")) == sorted(before.split(b"\n"))


def _names(*paths: Path) -> set[str]:
    return {name for path in paths for name in blocks(path.read_bytes()).cells}


class Killed(BaseException):
    """As sudden as a SIGKILL."""


def _write_until(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """The program dies at that call of durable.write_whole, before it writes anything."""
    real, left = atomic.write_whole, [calls]

    def write_whole(path: Path, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        real(path, data)

    monkeypatch.setattr(atomic, "write_whole", write_whole)


@pytest.mark.parametrize("calls", range(6))
def test_killed_at_any_write_no_cell_is_lost_and_the_same_command_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_bytes(ONE)
    two.write_bytes(TWO)
    every = _names(one, two)
    after = rewritten({"one": ONE, "two": TWO}, {"one": ["e", "f", "d"], "two": ["a", "b"]})
    with monkeypatch.context() as patch:
        _write_until(patch, calls)
        if calls < 5:
            with pytest.raises(Killed):
                rewrite.write_queue(tmp_path, {one: after["one"], two: after["two"]})
        else:
            rewrite.write_queue(tmp_path, {one: after["one"], two: after["two"]})
    assert _names(one, two) == every
    assert rewrite.finish(tmp_path) is (0 < calls < 5)
    wanted = (ONE, TWO) if calls == 0 else (after["one"], after["two"])
    assert (one.read_bytes(), two.read_bytes()) == wanted
    rewrite.refuse_unfinished(tmp_path)


def test_what_was_edited_after_a_kill_is_not_overwritten(tmp_path: Path) -> None:
    one = tmp_path / "one.txt"
    one.write_bytes(b"c/a.yaml recon\nc/new.yaml recon\n")
    (tmp_path / ".boxcar").mkdir()
    record = {str(one): ["c/a.yaml recon\n", ""]}
    (tmp_path / ".boxcar" / "split.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="To finish it: invoke split"):
        rewrite.refuse_unfinished(tmp_path)
    with pytest.raises(InputError, match=r"one\.txt was edited since"):
        rewrite.finish(tmp_path)
    assert b"new" in one.read_bytes()


def test_a_record_that_is_none_is_damage(tmp_path: Path) -> None:
    (tmp_path / ".boxcar").mkdir()
    (tmp_path / ".boxcar" / "split.json").write_text('["a"]')
    with pytest.raises(DamagedError, match="not a record of a split:"):
        rewrite.finish(tmp_path)


def test_lines_are_appended_below_a_last_line_without_its_end() -> None:
    assert rewrite.appended(b"", ["a b"]) == b"a b\n"
    assert rewrite.appended(b"x y\r\n", ["a b", "c d"]) == b"x y\r\na b\nc d\n"
    assert rewrite.appended(b"# top", ["a b"]) == b"# top\na b\n"
    assert rewrite.appended(b"# top", []) == b"# top"


def test_a_file_that_is_not_there_is_written_with_its_folder(tmp_path: Path) -> None:
    rewrite.write_queue(tmp_path, {tmp_path / "queues" / "new.txt": b"a b\n"})
    assert (tmp_path / "queues" / "new.txt").read_bytes() == b"a b\n"


def test_new_lines_stand_the_longest_first_with_their_comments_and_pushed_ones_stay() -> None:
    pushed = b"c/a.yaml t 1\n# dropped: c/x.yaml t\nc/b.yaml t 1\n"
    new = b"c/c.yaml t 1\n# about d\nc/d.yaml t 1\nc/e.yaml t 1\n"
    amounts = {"a": 1.0, "b": 9.0, "c": 1.0, "d": 3.0, "e": 3.0}
    found = rewrite.longest_first(pushed + new, pushed, amounts)
    assert found == pushed + b"# about d\nc/d.yaml t 1\nc/e.yaml t 1\nc/c.yaml t 1\n"
    assert rewrite.longest_first(found, found, amounts) == found
    assert rewrite.longest_first(b"c/b.yaml t 1\n", pushed, amounts) == b"c/b.yaml t 1\n"
