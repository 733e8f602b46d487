from __future__ import annotations

from pathlib import Path

import pytest
from journal_lines import chained

from boxcar.shared.errors import DamagedError
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.journal_chain import Event
from onbox.webhooks import journal_tail
from onbox.webhooks.journal_tail import JournalTail


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "q1.jsonl", {"run": "r", "queue": "q1", "box": "box-a"})
    for number in range(5):
        made.append("cell.started", cell=f"c{number}", attempt=1)
    return made


def size(journal: Journal) -> int:
    return journal.path.stat().st_size


def seqs(tail: JournalTail, end: int) -> list[int]:
    found = []
    while event := tail.next(end):
        found.append(event.seq)
    return found


@pytest.mark.parametrize("held", [1, 300, 10**6])
def test_each_event_comes_once_in_order_however_much_is_held(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(journal_tail, "READ_BYTES", held)
    tail = JournalTail(journal.path, 2)
    assert seqs(tail, size(journal)) == [3, 4, 5]
    journal.append("queue.done", verified=1, failed=0)
    assert seqs(tail, size(journal)) == [6]


def test_many_events_are_read_with_one_opening_of_the_file(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    real = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, *words: opened.append(path) or real(path, *words)
    )
    assert seqs(JournalTail(journal.path, 0), size(journal)) == [1, 2, 3, 4, 5]
    assert len(opened) == 1


def test_what_is_not_durable_is_not_held_because_it_may_be_written_anew(journal: Journal) -> None:
    durable = size(journal)
    lines = journal.path.read_bytes()
    tail = JournalTail(journal.path, 4)
    journal.append("cell.failed", cell="a", failure="M1")
    assert seqs(tail, durable) == [5]
    journal.path.write_bytes(lines)
    written = Journal(journal.path, {}).append("queue.done", verified=5, failed=0)
    found = tail.next(size(journal))
    assert found == written


def test_a_torn_line_is_read_when_it_is_whole(journal: Journal) -> None:
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-9])
    tail = JournalTail(journal.path, 0)
    assert seqs(tail, len(whole)) == [1, 2, 3, 4]
    journal.path.write_bytes(whole)
    assert seqs(tail, len(whole)) == [5]


def test_another_journal_in_its_place_is_damage_and_not_read_on(journal: Journal) -> None:
    tail = JournalTail(journal.path, 0)
    assert seqs(tail, size(journal)) == [1, 2, 3, 4, 5]
    at = "2026-01-02T03:04:05.000Z"
    other = [Event(n, f"evt_{n}", at, "cell.synced", {"cell": "x" * 99}) for n in range(1, 9)]
    journal.path.write_bytes(chained(other))
    with pytest.raises(DamagedError, match="line 6 is damaged"):
        seqs(tail, size(journal))


def test_what_is_skipped_is_told_and_damage_in_it_keeps_nothing_from_being_read(
    journal: Journal,
) -> None:
    lines = journal.path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"cell.started", b"cell.startxx")
    journal.path.write_bytes(b"\n".join(lines))
    told: list[int | None] = []
    tail = JournalTail(journal.path, 3, lambda event: told.append(event.seq if event else None))
    assert told == [1, None, 3]
    assert seqs(tail, size(journal)) == [4, 5]
