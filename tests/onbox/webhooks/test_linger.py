from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from journal_lines import chained
from waiting import LIMIT_S, until

from boxcar.shared.channels.answer import Later, Taken
from boxcar.shared.disk import lock
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import delivered
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.paths import DurablePaths
from onbox.webhooks import deliver, journal_tail, post
from onbox.webhooks.journal_tail import JournalTail
from onbox.webhooks.post import Posted

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    """Of a queue that has ended, with one event that nobody took."""
    made = DurablePaths(tmp_path, "run")
    for folder in made.folders():
        folder.mkdir(parents=True)
    held = lock.try_hold(made.lock("q1"))
    assert held is not None
    about = {"run": "run", "queue": "q1", "box": "box-a"}
    Journal(made.journal("q1"), about, lambda: lock.keep(held)).append(
        "queue.done", verified=1, failed=0
    )
    os.close(held)
    return made


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """The receiver is away: nothing listens at that port."""
    path = tmp_path / "credentials.json"
    record = (
        f'{{"env": {{}}, "webhooks": [{{"url": "http://127.0.0.1:1/x", "secret": "{SECRET}"}}]}}'
    )
    path.write_text(record)
    path.chmod(0o600)
    return path


class Running:
    """One that lingers, in a thread."""

    def __init__(self, tier: DurablePaths, secrets: Path, longest_s: float = LIMIT_S) -> None:
        self.left: list[int] = []
        self.thread = threading.Thread(
            target=lambda: self.left.append(deliver.linger(tier, "q1", secrets, longest_s)),
            daemon=True,
        )
        self.thread.start()
        until(lambda: self.is_at_work() or not self.thread.is_alive())

    def is_at_work(self) -> bool:
        return any(one.name == "webhook" for one in threading.enumerate())

    def ended(self) -> int:
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()
        return self.left[0]


def test_it_ends_when_the_receiver_is_back_and_has_taken_all(tier, secrets, monkeypatch):
    is_back = threading.Event()
    monkeypatch.setattr(
        post,
        "post_once",
        lambda *_: Posted(Taken() if is_back.is_set() else Later("away"), "", None),
    )
    one = Running(tier, secrets)
    assert one.thread.is_alive()
    assert not lock.is_held(tier.lock("q1"))  # the box's queue is free meanwhile
    is_back.set()
    assert one.ended() == 0
    [cursor] = delivered.read_delivered(tier.delivered("q1")).endpoints.values()
    assert cursor.seq == 1


def test_it_yields_to_whoever_takes_the_queue(tier, secrets):
    one = Running(tier, secrets)
    held = lock.hold(tier.lock("q1"), LIMIT_S)
    assert held is not None
    assert one.ended() == 1
    os.close(held)


@pytest.mark.parametrize("gone", ["credentials", "journal"])
def test_it_dies_with_the_credentials_and_with_the_run(gone, tier, secrets):
    one = Running(tier, secrets)
    (secrets if gone == "credentials" else tier.journal("q1")).unlink()
    one.ended()


def test_it_ends_by_itself_after_its_time(tier, secrets):
    assert Running(tier, secrets, longest_s=0.0).ended() == 1


def test_without_endpoints_nobody_lingers(tier, secrets):
    secrets.write_text('{"env": {}, "webhooks": []}')
    assert deliver.linger(tier, "q1", secrets) == 0


def test_a_program_that_was_not_started_by_its_door_leaves_none_behind(tmp_path, monkeypatch):
    started: list[list[str]] = []
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(deliver.subprocess, "Popen", lambda words, **_: started.append(words))
    deliver.leave_behind(tmp_path, "q1")
    assert started == []
    monkeypatch.setattr(
        deliver.sys, "orig_argv", ["python", "-I", "x.pyz", "agent", "--queue", "q1"]
    )
    deliver.leave_behind(tmp_path, "q1")
    words = ["linger", "--release", str(tmp_path), "--queue", "q1"]
    assert started == [["python", "-I", "x.pyz", *words]]


def test_no_node_of_a_cluster_keeps_one_when_its_job_is_over(tmp_path, monkeypatch):
    started: list[list[str]] = []
    monkeypatch.setattr(deliver.subprocess, "Popen", lambda words, **_: started.append(words))
    monkeypatch.setattr(deliver.sys, "orig_argv", ["python", "x.pyz", "agent", "--queue", "q1"])
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    deliver.leave_behind(tmp_path, "q1")
    assert started == []
    monkeypatch.delenv("SLURM_JOB_ID")
    deliver.leave_behind(tmp_path, "q1")
    assert len(started) == 1


# --- the journal's tail


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
def test_each_event_comes_once_in_order_however_much_is_held(journal, monkeypatch, held):
    monkeypatch.setattr(journal_tail, "READ_BYTES", held)
    tail = JournalTail(journal.path, 2)
    assert seqs(tail, size(journal)) == [3, 4, 5]
    journal.append("queue.done", verified=1, failed=0)
    assert seqs(tail, size(journal)) == [6]


def test_many_events_are_read_with_one_opening_of_the_file(journal, monkeypatch):
    opened: list[Path] = []
    real = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, *words: opened.append(path) or real(path, *words)
    )
    assert seqs(JournalTail(journal.path, 0), size(journal)) == [1, 2, 3, 4, 5]
    assert len(opened) == 1


def test_what_is_not_durable_is_not_held_because_it_may_be_written_anew(journal):
    durable = size(journal)
    lines = journal.path.read_bytes()
    tail = JournalTail(journal.path, 4)
    journal.append("cell.failed", cell="a", failure="M1")
    assert seqs(tail, durable) == [5]
    journal.path.write_bytes(lines)
    written = Journal(journal.path, {}).append("queue.done", verified=5, failed=0)
    found = tail.next(size(journal))
    assert found == written


def test_a_torn_line_is_read_when_it_is_whole(journal):
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-9])
    tail = JournalTail(journal.path, 0)
    assert seqs(tail, len(whole)) == [1, 2, 3, 4]
    journal.path.write_bytes(whole)
    assert seqs(tail, len(whole)) == [5]


def test_another_journal_in_its_place_is_damage_and_not_read_on(journal):
    tail = JournalTail(journal.path, 0)
    assert seqs(tail, size(journal)) == [1, 2, 3, 4, 5]
    at = "2026-01-02T03:04:05.000Z"
    other = [Event(n, f"evt_{n}", at, "cell.synced", {"cell": "x" * 99}) for n in range(1, 9)]
    journal.path.write_bytes(chained(other))
    with pytest.raises(DamagedError, match="line 6 is damaged"):
        seqs(tail, size(journal))


def test_what_is_skipped_is_told_and_damage_in_it_keeps_nothing_from_being_read(journal):
    lines = journal.path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"cell.started", b"cell.startxx")
    journal.path.write_bytes(b"\n".join(lines))
    told: list[int | None] = []
    tail = JournalTail(journal.path, 3, lambda event: told.append(event.seq if event else None))
    assert told == [1, None, 3]
    assert seqs(tail, size(journal)) == [4, 5]
