from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from plans import make_plan

from boxcar.shared import state
from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine, parse
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import queue_line
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import Rule
from boxcar.shared.files.queue_line import LAST_LINE_S
from boxcar.shared.files.release import Code, Release
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.machine.place import Place
from onbox.queue import lines as lines_of
from onbox.queue import queue_file
from onbox.queue.lines import Lines
from onbox.queue.next_cell import Begin
from onbox.queue.queue_file import GONE_S, STILL_S, QueueFile
from onbox.queue.release_lines import ReleaseLines

TWO = "configs/a.json t 3\nconfigs/b.json t 3\n"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(queue_file.time, "monotonic", lambda: made.now_s)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "q1.txt"
    made.write_text(TWO)
    return made


def cells(file: QueueFile) -> list[str]:
    return [cell.name for cell in file.queue.cells]


def begun(path: Path) -> QueueFile:
    file = QueueFile(path)
    assert file.look()
    assert cells(file) == ["a", "b"]
    return file


def test_what_is_appended_counts_at_once(path, clock):
    file = begun(path)
    path.write_text(TWO + "configs/c.json t 3\n")
    assert file.look()
    assert cells(file) == ["a", "b", "c"]


@pytest.mark.parametrize("half", ["", "configs/a.js", "configs/a.json t 3\n", "# new\nconfigs/a"])
def test_a_file_that_is_saved_in_place_counts_once_it_is_whole(path, clock, half):
    file = begun(path)
    path.write_text(half)
    assert not file.look()
    assert cells(file) == ["a", "b"]
    clock.now_s += STILL_S - 0.1
    assert not file.look()
    path.write_text(TWO + "configs/c.json t 3\n")
    assert file.look()
    assert cells(file) == ["a", "b", "c"]


def test_a_file_that_lost_lines_and_stands_still_is_believed(path, clock):
    file = begun(path)
    path.write_text("configs/b.json t 3\n")
    assert not file.look()
    clock.now_s += STILL_S
    assert file.look()
    assert cells(file) == ["b"]


def test_one_that_still_changes_does_not_stand_still(path, clock):
    file = begun(path)
    for letter in "xyz":
        path.write_text(f"configs/{letter}.json t 3\n")
        assert not file.look()
        clock.now_s += STILL_S - 0.1
    clock.now_s += 0.2
    assert file.look()
    assert cells(file) == ["z"]


@pytest.mark.parametrize("word", ["gone", "empty"])
def test_one_that_stays_gone_or_empty_ends_the_queue_with_that_word(path, clock, word):
    file = begun(path)
    path.unlink() if word == "gone" else path.write_text("")
    assert not file.look()
    clock.now_s += GONE_S - 0.1
    assert not file.look()
    clock.now_s += 0.1
    with pytest.raises(DamagedError, match=f"{path}.*{word}"):
        file.look()


def test_one_that_comes_back_has_its_whole_patience_again(path, clock):
    file = begun(path)
    for _ in range(3):
        path.unlink()
        assert not file.look()
        clock.now_s += GONE_S - 0.1
        path.write_text(TWO)
        assert file.look()


def test_a_queue_that_begins_empty_is_believed_after_a_while(path, clock):
    path.write_text("")
    file = QueueFile(path)
    assert not file.look()
    clock.now_s += GONE_S
    assert file.look()
    assert cells(file) == []
    assert file.look()


def long_ago(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns - 3600 * 10**9))


@pytest.mark.parametrize(("age_s", "is_read"), [(3600, False), (0, True)])
def test_a_file_is_not_read_again_while_nobody_writes_it(path, clock, monkeypatch, age_s, is_read):
    """One that was just written is: another change may leave the same time."""
    if age_s:
        long_ago(path)
    file, before = begun(path), path.stat()
    with path.open("r+b") as opened:
        opened.write(b"configs/z")
    monkeypatch.setattr(queue_file.os, "fstat", lambda number: before)
    assert file.look() is not is_read


@pytest.mark.parametrize("is_in_place", [True, False])
def test_an_edit_of_the_same_length_and_time_is_seen(path, clock, is_in_place):
    long_ago(path)
    file, before = begun(path), path.stat()
    other = path if is_in_place else path.with_name("new")
    other.write_text(TWO.replace("b.json", "z.json"))
    os.utime(other, ns=(0, before.st_mtime_ns))
    other.replace(path)
    assert not file.look()
    clock.now_s += STILL_S
    assert file.look()
    assert cells(file) == ["a", "z"]


def test_a_last_line_without_its_line_feed_counts_once_the_file_has_stood_still(path, clock):
    file = begun(path)
    path.write_text(TWO + "configs/c.json t 3")
    assert file.look() and not file.count_last_line()
    clock.now_s += LAST_LINE_S - 0.1
    path.write_text(TWO + "configs/c.json t 30")
    assert file.look() and not file.count_last_line()
    clock.now_s += LAST_LINE_S - 0.1
    assert file.look() and not file.count_last_line()
    assert cells(file) == ["a", "b"]
    clock.now_s += 0.1
    assert file.look() and file.count_last_line()
    assert (cells(file), file.queue.unfinished) == (["a", "b", "c"], "")
    assert file.look() and not file.count_last_line()


@pytest.mark.parametrize("more", ["\n", "\r\n", "\nconfigs/d.json t 3\n", "0", "0\n", " x=1\n# no"])
def test_after_it_has_counted_a_last_line_is_read_as_if_it_never_had(path, clock, more):
    text = TWO + "configs/c.json t 3"
    path.write_text(text)
    file = QueueFile(path)
    assert file.look()
    clock.now_s += LAST_LINE_S
    assert file.count_last_line()
    path.write_bytes((text + more).encode())
    assert file.look()
    fresh = QueueFile(path)
    clock.now_s += GONE_S
    assert fresh.look() or fresh.look()
    assert file.queue == fresh.queue


# --- lines


class Reporter:
    """With the first so many cells verified."""

    def __init__(self, verified: int) -> None:
        self.verified = verified
        self.asked = 0

    def record(self, cell: str) -> state.CellRecord:
        self.asked += 1
        is_verified = int(cell[1:]) < self.verified
        return state.CellRecord(state.Verified(1, "", "")) if is_verified else state.NOTHING_YET

    def begun(self, cell: str) -> None:
        self.asked += 1


CLAIMED: dict[str, str] = {}


def of(count: int, reporter: Reporter) -> tuple[Lines, SimpleNamespace]:
    file = SimpleNamespace(queue=queue_line.Queue(), commented_out=lambda: (), path="q", now=b"")

    def append(start: int, end: int) -> None:
        file.now += "".join(f"c{n}.json t\n" for n in range(start, end)).encode()

    def look() -> bool:
        file.queue = queue_line.parse_queue(file.now)
        return True

    file.append, file.look = append, look
    append(0, count)
    own = SimpleNamespace(
        place=SimpleNamespace(release=SimpleNamespace(name="0"), durable=None, queue="q"),
        has_config=lambda line: True,
        saying=lambda line: None,
    )
    made = Lines(
        file,
        Begin(),
        reporter,
        own,
        lambda line: None,
        claims=SimpleNamespace(
            of_others=set(),
            of_members=set(),
            pass_over=lambda cell: False,
            of=CLAIMED.get,
            not_verified=set,
        ),
        acceptance=SimpleNamespace(doubts={}),
    )
    return made, file


def test_a_cell_that_this_box_cannot_run_is_left_to_the_members_and_told_until_one_has_it():
    lines, _ = of(2, Reporter(1))
    lines.read()
    lines.leave_to_members("c1", "c1 needs 8 GPUs")
    assert lines.next() is None and lines.unfit == ["c1"]
    assert "c1 needs 8 GPUs" in lines.left_open()
    CLAIMED["c1"] = "another member"
    try:
        assert lines.unfit == [] and "c1 needs 8 GPUs" not in lines.left_open()
    finally:
        CLAIMED.clear()


def test_a_cell_that_was_put_off_is_passed_over_until_its_time_and_then_goes_first(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(lines_of.time, "monotonic", lambda: now[0])
    lines, _ = of(4, Reporter(1))
    lines.read()
    lines.put_off("c3", 90.0)
    lines.put_off("c2", 60.0)
    assert (lines.next().name, lines.has_waiting) == ("c1", True)
    now[0] = 60.0
    assert (lines.next().name, lines.has_waiting) == ("c2", True)
    lines.begins("c2")
    now[0] = 90.0
    assert (lines.next().name, lines.has_waiting) == ("c3", False)
    lines.begins("c3")
    assert lines.next().name == "c1"


@pytest.mark.parametrize("count", [10, 1000])
def test_of_an_appended_line_no_other_line_is_spelled_or_asked_again(monkeypatch, count):
    reporter = Reporter(count)
    lines, file = of(count, reporter)
    lines.read()
    reporter.asked = 0
    monkeypatch.setattr(lines_of.next_cell, "_content", lambda line: pytest.fail("spelled again"))
    file.append(count, count + 1)
    lines.read()
    assert reporter.asked == 1


# --- lines of a release


NFD = unicodedata.normalize("NFD", "ü.yaml")


def line(text: str) -> CellLine:
    return parse(text.encode(), 0, 1)


def lines(root: Path, *configs: str, **plan: Any) -> ReleaseLines:
    """Of a release with these configs; each has another digest."""
    records = tuple(FileRecord(f"code/{name}", 1, str(at) * 64) for at, name in enumerate(configs))
    found = Release("digits", "o.pyz", "t.zip", Code(None, False), records)
    place = SimpleNamespace(
        plan=make_plan(**{"command": ("t.py", "{cfg}"), "env": {}} | plan),
        durable=DurablePaths(root / "tier", "digits"),
        scratch=ScratchPaths(root / "box", "digits"),
        release=Path("/tier/releases/rel"),
        data=root / "data",
    )
    return ReleaseLines(cast(Place, place), found)


def test_a_line_whose_config_is_there_can_be_run(tmp_path):
    found = lines(tmp_path, "a.yaml")
    assert found.has_config(line("./a.yaml t")) and found.problem(line("./a.yaml t")) is None
    assert not found.has_config(line("b.yaml t"))
    assert "b.yaml is in no release: push it" in str(found.problem(line("b.yaml t")))


def test_a_line_without_a_config_is_for_every_release(tmp_path):
    found = lines(tmp_path, command=("t.py",))
    assert found.has_config(line("- t")) and found.problem(line("- t")) is None
    assert found.as_stored(line("- t")) == line("- t")
    assert found.saying(line("- t"))


def test_the_config_is_opened_by_the_name_that_it_is_stored_by(tmp_path):
    found = lines(tmp_path, NFD)
    assert found.as_stored(line("ü.yaml t")).cfg == NFD
    assert found.said(line("ü.yaml t")).words == ("t.py", NFD)


def test_of_two_files_of_one_spelling_none_is_chosen(tmp_path):
    found = lines(tmp_path, NFD, "ü.yaml")
    assert "is two files of this release" in str(found.problem(line("ü.yaml t")))
    assert found.saying(line("ü.yaml t")) is None


@pytest.mark.parametrize(
    ("text", "plan", "expected"),
    [
        ("- t", {}, "the command uses {cfg}"),
        ("a.yaml t env.K=1", {"secrets": ("K",)}, "K is one of the secrets"),
        (
            "a.yaml t",
            {"rules": (Rule("a*", nproc=1), Rule("*a", nproc=2))},
            "two values of nproc_per_node",
        ),
    ],
)
def test_a_line_that_was_appended_since_is_judged_as_plan_would(tmp_path, text, plan, expected):
    assert expected in str(lines(tmp_path, "a.yaml", **plan).problem(line(text)))


def test_what_it_says_is_of_the_configs_bytes_in_this_release(tmp_path):
    found = lines(tmp_path, "x.yaml", "a.yaml")
    asked = line("a.yaml t lr=1")
    assert found.saying(asked) == said.saying_of(make_plan(), asked, "1" * 64)
    assert found.saying(line("b.yaml t")) is None
    assert found.asked(asked).saying == found.saying(asked)


def test_resume_args_are_said_once_there_is_a_checkpoint(tmp_path):
    found = lines(tmp_path, "a.yaml", resume="last.pt", resume_args=("-r", "{resume}"))
    out = tmp_path / "box/boxcar/digits/cells/a/out"
    before = found.said(line("a.yaml t"))
    assert (before.words, before.resume) == (("t.py", "a.yaml"), f"{out}/last.pt")
    out.mkdir(parents=True)
    (out / "last.pt").write_bytes(b"1")
    after = found.said(line("a.yaml t"))
    assert after.words == ("t.py", "a.yaml", "-r", f"{out}/last.pt")
    assert found.asked(line("a.yaml t")).words == ("t.py", "a.yaml")


def test_a_pattern_stands_for_its_newest_match_and_else_for_nothing(tmp_path):
    found = lines(tmp_path, "a.yaml", resume="step_*.pt", resume_args=("-r", "{resume}"))
    out = tmp_path / "box/boxcar/digits/cells/a/out"
    out.mkdir(parents=True)
    assert found.said(line("a.yaml t")).resume == ""
    for step in (9, 10):
        (out / f"step_{step}.pt").write_bytes(b"1")
    said = found.said(line("a.yaml t"))
    assert said.resume == f"{out}/step_10.pt" and said.words[-1] == said.resume
