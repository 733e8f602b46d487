from __future__ import annotations

import random
from pathlib import Path

import pytest
from far_boxes import FarRun, make_far_run

from boxcar.laptop.run import log_source
from boxcar.laptop.run.log_source import BoxLog, FileLog, LogSource
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.wire import run_asks
from onbox.answers import log_slice

TEXT = b"".join(b"line %d\n" % number for number in range(100))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarRun:
    return make_far_run(tmp_path, monkeypatch)


def log_path(run: FarRun, cell: str = "a") -> Path:
    path = run.agents.project.scratch("box-a").log(cell)
    atomic.make_folder(path.parent)
    return path


def box_log(run: FarRun, cell: str = "a") -> BoxLog:
    return BoxLog(run.site, "box-a", cell)


@pytest.fixture(params=["a file", "a box"])
def source(request: pytest.FixtureRequest, run: FarRun) -> tuple[LogSource, Path]:
    path = log_path(run)
    return (FileLog(path) if request.param == "a file" else box_log(run)), path


def test_the_end_is_whole_lines_and_what_is_unfinished(source: tuple[LogSource, Path]) -> None:
    log, path = source
    path.write_bytes(TEXT + b"half")
    assert log.end(2) == (b"line 98\nline 99\nhalf", len(TEXT) + 4)
    path.write_bytes(TEXT)
    assert log.end(2) == (b"line 98\nline 99\n", len(TEXT))
    assert log.end(1000) == (TEXT, len(TEXT))
    path.write_bytes(b"")
    assert log.end(2) == (b"", 0)


def test_a_log_that_is_followed_comes_once_and_whole(source: tuple[LogSource, Path]) -> None:
    log, path = source
    path.write_bytes(TEXT[:100])
    came, offset = log.end(1000)
    left, rolled = TEXT[100:], random.Random(1)
    while left:
        cut = rolled.randrange(1, 90)
        with path.open("ab") as file:
            file.write(left[:cut])
        left = left[cut:]
        data, offset = log.since(offset)
        came += data
    assert came == TEXT
    assert log.since(offset) == (b"", offset)


def test_a_log_that_was_replaced_begins_anew(source: tuple[LogSource, Path]) -> None:
    log, path = source
    path.write_bytes(TEXT)
    _, offset = log.end(1)
    path.write_bytes(b"new\n")
    assert log.since(offset) == (b"new\n", 4)
    path.unlink()
    assert log.since(4) == (b"", 0)


def test_a_progress_bar_without_end_costs_no_more_than_a_bounded_look(
    source: tuple[LogSource, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_source, "MOST_TAIL_BYTES", 100_000)
    log, path = source
    path.write_bytes(b"50%\r" * 100_000)
    data, end = log.end(10)
    assert 100_000 <= len(data) < 200_000
    assert end == 400_000


def test_more_than_one_answer_holds_comes_in_several(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_slice, "MOST_BYTES", 100)
    log_path(run).write_bytes(TEXT)
    came, offset = b"", 0
    while (found := box_log(run).since(offset))[0]:
        came, offset = came + found[0], found[1]
    assert came == TEXT


def test_a_link_that_drops_is_waited_for_and_said_once(
    run: FarRun,
) -> None:
    said: list[str] = []
    run.site.tell = said.append
    log, path = box_log(run), log_path(run)
    path.write_bytes(TEXT[:50])
    _, offset = log.end(1)
    for _ in range(2):
        run.world.cut.add("box-a")
        assert [log.since(offset) for _ in range(3)] == [(b"", offset)] * 3
        run.world.cut.clear()
        path.write_bytes(TEXT)
        data, offset = log.since(offset)
    assert len(said) == 2
    assert all("the log continues when the box answers again" in text for text in said)
    assert data == b"" and offset == len(TEXT)


def test_what_a_person_has_to_mend_ends_the_following(run: FarRun) -> None:
    with pytest.raises(InputError, match="cell: "):
        BoxLog(run.site, "box-a", "../../etc/passwd").since(0)


def test_whether_a_box_has_the_log_at_all(run: FarRun) -> None:
    assert not box_log(run).is_there()
    log_path(run).write_bytes(b"")
    assert box_log(run).is_there(), "an attempt that has said nothing yet"
    published = run.agents.site.tier.cell("b") / "b.log"
    atomic.make_folder(published.parent)
    published.write_bytes(b"done\n")
    assert box_log(run, "b").end(5) == (b"done\n", 5)


def test_the_log_of_an_agent_is_its_own(run: FarRun) -> None:
    path = run.agents.project.scratch("box-a").agent_log("queue_1")
    atomic.make_folder(path.parent)
    path.write_bytes(b"Traceback\n")
    question = run_asks.ReadLog(None, 3, 100, queue="queue_1")
    assert run.site.ask("box-a", question).data == b"Traceback\n"
