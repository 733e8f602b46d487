from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flips import flipped
from journal_lines import COMMON, chained, events, v1_lines

from boxcar.shared import state
from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import journal
from boxcar.shared.files.journal import Journal, JournalEnd
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.journal_repair import from_copy, problem

V2 = Path(__file__).parents[2] / "data" / "v2"


def replaced(data: bytes, number: int, change: Callable[[bytes], bytes]) -> bytes:
    """The journal with another line of this number, counted from 1."""
    lines = data.splitlines(keepends=True)
    lines[number - 1] = change(lines[number - 1])
    return b"".join(lines)


# --- one flipped bit


@pytest.mark.parametrize("name", ["journal.jsonl", "journal-after-v1.jsonl"])
def test_of_a_thousand_flipped_bits_none_changes_the_state(name):
    data = (V2 / name).read_bytes()
    right = state.replay(journal.parse_journal(data, name).events)
    refused = 0
    for bad in flipped(data, 1_000, seed=3):
        try:
            assert state.replay(journal.parse_journal(bad, name).events) == right
        except DamagedError:
            refused += 1
    assert refused > 990


@pytest.mark.parametrize("name", ["journal.jsonl", "journal-after-v1.jsonl"])
def test_a_flip_in_the_last_line_feed_loses_no_event(name, tmp_path):
    data = (V2 / name).read_bytes()
    right = journal.parse_journal(data, name)
    path = tmp_path / name
    for bit in range(8):
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1 << bit]))
        assert journal.read_journal(path).events == right.events
        writer = Journal(path, COMMON)
        assert path.read_bytes() == data and writer.torn_file is None
        writer.append("agent.started")
        assert journal.read_journal(path).end == writer.end


def test_a_last_line_whose_line_feed_never_came_is_whole(tmp_path):
    path = tmp_path / "q1.jsonl"
    data = chained(events(3))
    path.write_bytes(data[:-1])
    assert journal.read_journal(path).events == tuple(events(3))
    assert Journal(path, COMMON).torn_file is None
    assert path.read_bytes() == data


def test_of_version_1_a_last_line_without_its_line_feed_never_happened():
    reading = journal.parse_journal(v1_lines(events(3))[:-1], "here")
    assert len(reading.events) == 2 and reading.torn


# --- the chain

CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "another value": lambda line: line.replace(b'"c2"', b'"c3"'),
    "another value and a check of its own": lambda line: chained(
        [Event(2, "evt_2", "2026-11-20T10:00:00.000Z", "cell.claimed", COMMON | {"cell": "c3"})]
    ),
    "a space more": lambda line: line.replace(b'"v":2,', b'"v":2, '),
    "no check": lambda line: line[: line.rindex(b',"check"')] + b"}\n",
    "another check": lambda line: line[:-20] + b"0" * 16 + b'"}\n',
    "the version before": lambda line: v1_lines(events(1, first=2)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_line_is_damage_with_its_number(change):
    data = chained(events(4))
    assert replaced(data, 2, change) != data
    with pytest.raises(DamagedError, match=r"^here: line 2 is damaged.*invoke repair"):
        journal.parse_journal(replaced(data, 2, change), "here")


def test_the_first_line_of_version_2_covers_all_that_is_before_it():
    old = v1_lines(events(3))
    data = old + chained(events(2, first=4), journal.parse_journal(old, "here").end.check)
    assert journal.parse_journal(data, "here").events == tuple(events(5))
    for bad in flipped(old, 200, seed=5):
        with pytest.raises(DamagedError):
            journal.parse_journal(bad + data[len(old) :], "here")


def test_an_agent_goes_on_after_lines_of_version_1(tmp_path):
    path = tmp_path / "q1.jsonl"
    path.write_bytes(v1_lines(events(2)))
    writer = Journal(path, COMMON)
    writer.append("agent.started")
    assert path.read_bytes().startswith(v1_lines(events(2)) + b'{"v":2,"seq":3,')
    assert journal.read_journal(path).end == writer.end


def test_after_a_line_of_version_2_none_of_version_1_is_accepted():
    with pytest.raises(DamagedError, match=r"line 3 is damaged \(version 1 after version 2"):
        journal.parse_journal(chained(events(2)) + v1_lines(events(1, first=3)), "here")


# --- a newer version


def newer(seq: int, **more: Any) -> bytes:
    return json.dumps({"v": 3, "seq": seq, "new": 1} | more).encode() + b"\n"


@pytest.mark.parametrize("before", [b"", chained(events(2)), v1_lines(events(2))])
def test_a_newer_version_is_said_and_is_not_called_damage(before):
    with pytest.raises(NewerError, match="written by a newer Boxcar: update") as raised:
        journal.parse_journal(before + newer(3) + newer(4), "here")
    assert "damage" not in str(raised.value)


def test_a_newer_version_before_a_line_of_this_one_is_a_flipped_bit():
    data = chained(events(3))
    with pytest.raises(DamagedError, match="line 2 is damaged"):
        newer = replaced(data, 2, lambda line: line.replace(b'"v":2', b'"v":3'))
        journal.parse_journal(newer, "here")


# --- a tail that is missing


@pytest.mark.parametrize("before", [b"", v1_lines(events(2))])
def test_where_a_journal_ended_once_tells_whether_its_tail_is_missing(before):
    first = 1 + before.count(b"\n")
    start = journal.parse_journal(before, "here").end
    data = before + chained(events(3, first), start.check)
    lines = data.splitlines(keepends=True)
    reading = journal.parse_journal(data, "here")
    for kept in range(len(lines) + 1):
        was = journal.parse_journal(b"".join(lines[:kept]), "here")
        assert reading.has(was.end) and journal.lack(reading, was.end) is None
        if kept < len(lines):
            problem = journal.lack(was, reading.end)
            assert problem and "missing" in problem


def test_a_journal_of_another_history_is_not_the_one_that_was_seen():
    one = journal.parse_journal(chained(events(3)), "here")
    assert journal.lack(one, JournalEnd(2, "0" * 16)) == "up to event 2 it is not what it was"


def test_an_agent_does_not_go_on_after_a_tail_that_is_missing(tmp_path):
    path = tmp_path / "q1.jsonl"
    end = journal.parse_journal(chained(events(5)), "here").end
    path.write_bytes(chained(events(3)))
    with pytest.raises(DamagedError, match=r"ends after event 3: its last 2 events are missing"):
        Journal(path, COMMON, seen=end)
    assert path.read_bytes() == chained(events(3))
    path.unlink()
    with pytest.raises(DamagedError, match=r"ends after event 0: its last 5 events are missing"):
        Journal(path, COMMON, seen=end)


# --- repair


DATA = (V2 / "journal.jsonl").read_bytes()
END = journal.parse_journal(DATA, "here").end
LINES = DATA.splitlines(keepends=True)


def test_a_copy_puts_back_what_it_has_and_newer_lines_are_kept():
    bad = b"".join([*LINES[:3], b"rubbish\n", b"more rubbish\n", *LINES[5:]])
    assert from_copy(bad, DATA, [END]) == DATA
    assert from_copy(bad, b"".join(LINES[:7]), [END]) == DATA
    assert from_copy(bad, b"".join(LINES[:5]), [END]) == DATA
    assert from_copy(bad, b"".join(LINES[:4]), [END]) is None, "it has no copy of the fifth line"


def test_a_tail_comes_back_from_a_copy_that_has_it():
    cut = b"".join(LINES[:5])
    assert problem(cut, [END], "here") == "it ends after event 5: its last 9 events are missing"
    assert from_copy(cut, DATA, [END]) == DATA
    assert from_copy(cut, b"".join(LINES[:9]), [END]) is None
    assert from_copy(b"", DATA, [END]) == DATA


def test_a_copy_of_another_history_is_not_put_back():
    bad = b"".join([*LINES[:3], b"rubbish\n", *LINES[4:]])
    other = chained(events(20))
    assert from_copy(bad, other, []) is None
    assert from_copy(bad, b"", []) is None


def test_lines_of_version_1_come_back_from_a_copy_that_the_first_new_line_covers():
    old = v1_lines(events(4))
    data = old + chained(events(3, first=5), journal.parse_journal(old, "here").end.check)
    bad = data.replace(b'"c2"', b'"c3"', 1)
    assert problem(bad, [], "here")
    assert from_copy(bad, old, []) == data
