from __future__ import annotations

from pathlib import Path

import pytest
from journal_lines import chained

from boxcar.shared.files.delivered import Cursor
from boxcar.shared.files.journal import Journal
from onbox.webhooks import journal_tail
from onbox.webhooks.journal_tail import Backlog

NEW = {"hook": Cursor(), "chat": Cursor()}
CHANNELS = {"hook": None, "chat": "feishu"}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "q1.jsonl", {"run": "r", "queue": "q1", "box": "box-a"})


def test_each_endpoint_waits_for_what_it_gets_by_itself(journal: Journal) -> None:
    left = Backlog(journal.path, CHANNELS).left
    assert left(NEW) == 0
    journal.append("cell.started", cell="a", attempt=1)
    journal.append("cell.claimed", cell="a")
    journal.append("queue.done", verified=1, failed=0)
    assert left(NEW) == 3
    assert left(NEW | {"hook": Cursor(1)}) == 2
    assert left({"hook": Cursor(3), "chat": Cursor(0, disabled="answered 410")}) == 0


def test_what_was_read_is_not_read_again(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100):
        journal.append("cell.started", cell=f"c{number}", attempt=1)
    counted = Backlog(journal.path, CHANNELS)
    assert counted.left(NEW) == 100
    parsed: list[bytes] = []
    parse = journal_tail.JournalTail._parse
    monkeypatch.setattr(
        journal_tail.JournalTail,
        "_parse",
        lambda tail, line: parsed.append(line) or parse(tail, line),
    )
    journal.append("queue.done", verified=1, failed=0)
    assert counted.left(NEW) == 102
    assert len(parsed) == 1


def test_a_torn_last_line_waits_for_nobody(journal: Journal) -> None:
    event = journal.append("queue.done", verified=1, failed=0)
    journal.path.write_bytes(chained([event])[:-2])
    assert Backlog(journal.path, CHANNELS).left(NEW) == 0
