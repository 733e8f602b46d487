from __future__ import annotations

import errno
import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_lines import chained

from boxcar.shared import timestamp
from boxcar.shared.disk import lock
from boxcar.shared.errors import DamagedError, TemporaryError
from boxcar.shared.files import journal
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.journal_chain import Event

COMMON = {"run": "digits-ablation", "queue": "queue_1", "box": "box-a"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue_1.jsonl"


def written(path: Path, count: int) -> bytes:
    """A journal of `count` events, as its writer leaves it."""
    writer = Journal(path, COMMON)
    for number in range(count):
        writer.append("cell.progress", cell="recon_baseline", progress={"step": number})
    return path.read_bytes()


def line(seq: object, **changes: Any) -> bytes:
    record = {"v": 1, "seq": seq, "id": f"evt_{seq}", "at": "2026-11-20T10:00:00.000Z"}
    return json.dumps(record | {"type": "box.audit", "data": {}} | changes).encode() + b"\n"


# --- writing


def test_an_event_says_what_when_and_where(path):
    event = Journal(path, COMMON).append("cell.claimed", cell="recon_baseline", reason=None)
    assert event.data == COMMON | {"cell": "recon_baseline"}
    assert (event.seq, event.type, event.cell) == (1, "cell.claimed", "recon_baseline")
    timestamp.parse_utc(event.at)
    assert journal.read_journal(path).events == (event,)


def test_events_are_one_json_object_a_line_and_count_from_one(path):
    lines = written(path, 3).splitlines()
    assert [json.loads(text)["seq"] for text in lines] == [1, 2, 3]
    assert len({json.loads(text)["id"] for text in lines}) == 3


def test_an_event_is_on_the_disk_when_append_returns(path, monkeypatch):
    writer, fsync = Journal(path, COMMON), os.fsync
    synced: list[bytes] = []

    def seen(fd: int) -> None:
        fsync(fd)
        synced.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", seen)
    event = writer.append("agent.started", pid=1)
    assert synced[0] == event.to_line()


def test_a_writer_goes_on_where_the_one_before_it_ended(path):
    before = written(path, 3)
    taken: list[Event] = []
    writer = Journal(path, COMMON, take=taken.append)
    assert [event.seq for event in taken] == [1, 2, 3]
    assert writer.torn_file is None
    assert writer.append("agent.started").seq == 4
    assert path.read_bytes().startswith(before)


@pytest.mark.parametrize("text", ["line\nfeed", "größe 名", "\u2028", "\x00\x1b", "\udcff"])
def test_no_text_breaks_a_line(path, text):
    writer = Journal(path, COMMON)
    event = writer.append("cell.failed", reason=text, **{"data-" + text: 1})
    writer.append("agent.stopped")
    assert journal.read_journal(path).events[0] == event
    assert path.read_bytes().count(b"\n") == 2


def test_a_loss_that_is_no_number_leaves_json_that_everybody_can_read(path):
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    event = Journal(path, COMMON).append("cell.progress", progress={"loss": float("nan")})
    json.loads(path.read_bytes(), parse_constant=refuse)
    assert journal.read_journal(path).events == (event,)


@pytest.mark.parametrize("step", ["os.write", "os.fsync"])
def test_after_an_append_that_failed_the_next_one_still_leaves_a_good_journal(
    path, monkeypatch, step
):
    writer, write = Journal(path, COMMON), os.write
    first = writer.append("agent.started")

    def half_then_full(fd: int, data: memoryview) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[: len(data) // 2])

    def lost(_fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(step, half_then_full if step == "os.write" else lost)
        with pytest.raises(OSError):
            writer.append("cell.claimed", cell="recon_baseline")
    last = writer.append("agent.stopped", reason="no space left")
    assert journal.read_journal(path).events == (first, last)


def test_a_journal_on_a_full_disk_goes_on_once_there_is_room(small_disk):
    disk = small_disk("size=64k")
    (disk / "checkpoint").write_bytes(b"x" * 40_000)
    writer = Journal(disk / "queue_1.jsonl", COMMON)
    with pytest.raises(OSError):
        for _ in range(1000):
            writer.append("box.warning", text="x" * 1000)
    (disk / "checkpoint").unlink()
    writer.append("queue.stopped", reason="no space left")
    reading = journal.read_journal(disk / "queue_1.jsonl")
    assert reading.end == writer.end and reading.torn == b""


def test_a_writer_that_dies_within_an_append_loses_that_event_only(path, monkeypatch, in_child):
    before, write = written(path, 2), os.write

    def half_then_dead(fd: int, data: memoryview) -> int:
        write(fd, data[: len(data) // 2])
        os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half_then_dead)
        assert in_child(lambda: Journal(path, COMMON).append("cell.claimed", cell="x")) == 9
    assert len(path.read_bytes()) > len(before)
    writer = Journal(path, COMMON)
    assert writer.torn_file is not None
    assert writer.append("agent.started").seq == 3
    assert [event.seq for event in journal.read_journal(path).events] == [1, 2, 3]


# --- a torn last line


@pytest.mark.parametrize("kept", [1, 10, -1])
def test_a_torn_last_line_never_happened_and_is_said(path, kept):
    before = written(path, 2)
    torn = line(3)[:-1][:kept]
    path.write_bytes(before + torn)
    reading = journal.read_journal(path)
    assert [event.seq for event in reading.events] == [1, 2]
    assert reading.torn == torn
    assert path.read_bytes() == before + torn


def test_even_a_whole_event_without_its_line_feed_never_happened(path):
    path.write_bytes(line(1) + line(2)[:-1])
    assert [event.seq for event in journal.read_journal(path).events] == [1]


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize(
    "torn", [b'{"v":1,"se', b"\0" * 4096, b"\xff\xfe", line(3)[:-1], b"x" * 100_000]
)
def test_the_writer_puts_a_torn_line_aside_and_goes_on(path, before, torn):
    good = written(path, before) if before else b""
    path.write_bytes(good + torn)
    writer = Journal(path, COMMON)
    assert writer.torn_file is not None and writer.torn_file.read_bytes() == torn
    assert path.read_bytes() == good
    event = writer.append("agent.started")
    assert event.seq == before + 1
    end = journal.parse_journal(good, "here").end
    assert path.read_bytes() == good + chained([event], end.check)
    assert journal.read_journal(path).torn == b""


def test_a_journal_that_was_cut_back_is_on_the_disk_before_it_goes_on(path, monkeypatch):
    good = written(path, 2)
    path.write_bytes(good + b'{"v":1')
    fsync, synced = os.fsync, []

    def seen(fd: int) -> None:
        fsync(fd)
        synced.append((os.fstat(fd).st_ino, os.fstat(fd).st_size))

    monkeypatch.setattr(os, "fsync", seen)
    Journal(path, COMMON)
    assert (path.stat().st_ino, len(good)) in synced


# --- damage

DAMAGES = {
    "no JSON": b"{broken\n",
    "an empty line": b"\n",
    "zeros": b"\0\0\0\0\n",
    "invalid UTF-8": b'{"v": 1, "\xff": 2}\n',
    "UTF-16": line(2)[:-1].decode().encode("utf-16") + b"\n",
    "a list": b"[]\n",
    "a number": b"2\n",
    "null": b"null\n",
    "a text": b'"v"\n',
    "two events glued": line(2)[:-1] + line(3),
    "nested too deep": b"[" * 100_000 + b"\n",
    "no type": json.dumps({"v": 1, "seq": 2, "id": "x", "at": "x", "data": {}}).encode() + b"\n",
    "data is a list": line(2, data=[]),
    "type is no text": line(2, type=["box.audit"]),
    "seq is a text": line("2"),
    "seq is a fraction": line(2.0),
    "at is no text": line(2, at=None),
    "version 2 without its check": line(2, v=2),
    "a version that never was": line(2, v=0),
    "a version that is a truth": line(2, v=True),
    "no version": line(2).replace(b'"v"', b'"w"'),
    "a gap": line(3),
    "the same event twice": line(1),
    "counting from zero": line(0),
}


@pytest.mark.parametrize("bad", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("after", [line(3), b"", b'{"v":1,'], ids=["middle", "last", "before torn"])
def test_a_bad_line_is_damage_that_names_the_line_and_the_file_stays(path, bad, after):
    data = line(1) + bad + after
    path.write_bytes(data)
    for read in (journal.read_journal, lambda path: Journal(path, COMMON)):
        with pytest.raises(DamagedError, match=rf"^{path}: line 2 is damaged"):
            read(path)
    assert path.read_bytes() == data
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_bad_first_line_is_damage_even_where_it_is_empty(path):
    path.write_bytes(b"\n")
    with pytest.raises(DamagedError, match="line 1"):
        journal.read_journal(path)


@given(st.binary())
def test_any_bytes_are_events_a_torn_line_or_damage(data):
    try:
        reading = journal.parse_journal(data, "here.jsonl")
    except DamagedError as error:
        assert str(error).startswith("here.jsonl: line ")
    else:
        assert reading.events == () and reading.torn == data


# --- reading


@pytest.mark.parametrize("data", [None, b""])
def test_no_journal_and_an_empty_one_have_no_events(path, data):
    if data is not None:
        path.write_bytes(data)
    assert journal.read_journal(path) == journal.Reading(())
    assert Journal(path, COMMON).append("agent.started").seq == 1


def test_fields_of_a_newer_boxcar_are_kept_and_written_back():
    data = line(1, host="box-a", data={"cell": "x", "new": {"a": [1]}})
    [event] = journal.parse_journal(data, "here.jsonl").events
    assert event.extra == {"host": "box-a"}
    assert event.data["new"] == {"a": [1]}
    written = json.loads(event.to_line())
    assert len(written.pop("check")) == 16
    assert written == json.loads(data) | {"v": 2}


def test_types_of_a_newer_boxcar_are_read():
    [event] = journal.parse_journal(line(1, type="cell.teleported"), "here.jsonl").events
    assert event.type == "cell.teleported"


def test_ten_thousand_events_are_read(path):
    events = [
        Event(number, f"evt_{number}", "2026-11-20T10:00:00.000Z", "cell.progress", dict(COMMON))
        for number in range(1, 10_001)
    ]
    path.write_bytes(chained(events))
    assert journal.read_journal(path).events == tuple(events)


def test_webhooks_carry_the_types_of_the_contract_and_no_other():
    assert sorted(journal.PUBLIC_TYPES) == [
        "agent.started",
        "agent.stopped",
        "box.audit",
        "box.idle",
        "box.warning",
        "cell.failed",
        "cell.progress",
        "cell.retried",
        "cell.started",
        "cell.synced",
        "cell.verified",
        "queue.done",
        "queue.started",
        "queue.stopped",
    ]


# --- a lock that was lost meanwhile


def test_a_tier_that_was_unmounted_is_not_told_as_another_agents_doing(path):
    path.parent.mkdir(exist_ok=True)
    held = lock.try_hold(path.with_suffix(".lock"))
    writer = Journal(path, COMMON, lambda: lock.keep(held))
    writer.append("agent.started")
    tier, gone = path.parent, path.parent.with_name("unmounted")
    tier.rename(gone)
    for _ in range(2):  # without the mount's content, and with an empty mount point
        with pytest.raises(TemporaryError, match=r"seems to be unmounted.*invoke launch") as raised:
            writer.append("cell.claimed", cell="a")
        assert "another agent" not in str(raised.value)
        tier.mkdir(exist_ok=True)
    assert list(tier.iterdir()) == []
    tier.rmdir()
    gone.rename(tier)
    assert writer.append("cell.claimed", cell="a").seq == 2, "mounted again, it goes on"
    assert held is not None
    os.close(held)


def test_an_agent_that_lost_its_queue_to_another_writes_nothing_more(path):
    place = path.with_suffix(".lock")
    held = lock.try_hold(place)
    writer = Journal(path, COMMON, lambda: lock.keep(held))
    assert held is not None and writer.append("agent.started").seq == 1
    fcntl.flock(held, fcntl.LOCK_UN)  # as a file server takes it from a host out of reach
    assert writer.append("queue.started").seq == 2, "nobody wanted it, so it was taken back"
    fcntl.flock(held, fcntl.LOCK_UN)
    other = lock.try_hold(place)
    assert other is not None
    before = path.read_bytes()
    with pytest.raises(TemporaryError, match="another agent has taken this queue over"):
        writer.append("cell.claimed", cell="recon_baseline")
    assert path.read_bytes() == before
    Journal(path, COMMON, lambda: lock.keep(other)).append("agent.started")
    os.close(other)
    with pytest.raises(TemporaryError, match="invoke status"):
        writer.append("cell.claimed", cell="recon_baseline")
    assert [event.seq for event in journal.read_journal(path).events] == [1, 2, 3]
    os.close(held)


# --- writes that fail, or are cut


def test_an_event_whose_write_fails_never_was(tmp_path, monkeypatch):
    path = tmp_path / "q.jsonl"
    made = Journal(path, {})
    made.append("cell.succeeded", cell="a")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            made.append("cell.started", cell="b")
    made.append("cell.started", cell="c")
    found = [(event.seq, event.type, event.cell) for event in journal.read_journal(path).events]
    assert found == [(1, "cell.succeeded", "a"), (2, "cell.started", "c")]


def test_what_a_crash_tore_is_cut_after_the_last_whole_line(tmp_path):
    path = tmp_path / "q.jsonl"
    made = Journal(path, {})
    for type, cell in GROUP:
        made.append(type, cell=cell)
    data = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    for cut in range(0, len(data), 7):
        path.write_bytes(data[:cut])
        for left in tmp_path.glob("*.torn-*"):
            left.unlink()
        again = Journal(path, {})
        assert again.end.seq in (
            sum(end <= cut for end in ends),
            sum(end - 1 <= cut for end in ends),
        )
        again.append("agent.started")
        assert len(journal.read_journal(path).events) == again.end.seq


GROUP = [("cell.succeeded", "a"), ("cell.claimed", "b"), ("cell.started", "b")]


class Killed(BaseException):
    pass


def killed_after(lines: int, path: Path) -> bool:
    """Write events as the agent does, and die after so many lines of the journal's own code."""
    left = lines

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(("files/journal.py", "disk/atomic.py")):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise Killed
        return trace

    made = Journal(path, COMMON)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for type, cell in GROUP:
            made.append(type, cell=cell)
    except Killed:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_agent_that_dies_at_any_line_leaves_a_beginning_of_what_it_wrote(tmp_path):
    """None of it is there twice or out of order, and the next agent goes on after it."""
    found, lines = set(), 0
    while True:
        path = tmp_path / f"{lines}.jsonl"
        was_killed = killed_after(lines, path)
        there = [(event.type, event.cell) for event in journal.read_journal(path).events]
        assert there == GROUP[: len(there)], lines
        following = Journal(path, COMMON).append("agent.started")
        assert following.seq == len(there) + 1
        found.add(len(there))
        if not was_killed:
            break
        lines += 1
    assert found == set(range(len(GROUP) + 1))
    assert lines > 20
