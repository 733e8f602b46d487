from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from boxcar.shared.disk import atomic
from boxcar.shared.files import attempt, codec, journal
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal import Journal
from boxcar.shared.paths import DurablePaths
from onbox.machine.place import Place
from onbox.machine.room_wait import RoomWait
from onbox.queue.claims import Claims
from onbox.queue.reporter import Reporter

AT = "2026-11-21T03:27:43.973Z"


class Queue1:
    """The claims of q1 on box-a, and what its journal says."""

    def __init__(self, root: Path, box: str = "box-a") -> None:
        self.tier = DurablePaths(root, "tiny")
        for folder in self.tier.folders():
            folder.mkdir(parents=True, exist_ok=True)
        common = {"run": "tiny", "queue": "q1", "box": box}
        self.reporter = Reporter(Journal(self.tier.journal("q1"), common), None)
        place = cast(Place, SimpleNamespace(durable=self.tier, queue="q1", box=box))
        room = RoomWait(0, lambda wait_s: None, lambda: True, lambda text: None)
        self.claims = Claims(place, self.reporter, room, self.reporter.say)

    def claimed_by(self, queue: str, moved_from: str = "") -> None:
        claim = Claim("a", queue, "box-b", AT, moved_from=moved_from)
        atomic.write_whole(self.tier.claim("a"), codec.to_document(claim))

    def said(self) -> list[tuple[str, dict[str, Any]]]:
        events = journal.read_journal(self.tier.journal("q1")).events
        return [(event.type, event.data) for event in events]


@pytest.fixture
def q1(tmp_path: Path) -> Queue1:
    return Queue1(tmp_path)


def test_a_cell_that_nobody_has_is_claimed_once_and_stays_ours(q1: Queue1) -> None:
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    owner = attempt.read_claim(q1.tier.claim("a"))
    assert owner and (owner.queue, owner.box) == ("q1", "box-a")
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed"]
    assert not q1.claims.leave_what_is_anothers("a")


def test_another_queues_cell_is_said_once_and_left(q1: Queue1) -> None:
    q1.claimed_by("q2")
    assert not q1.claims.take("a", None) and not q1.claims.take("a", None)
    assert q1.claims.leave_what_is_anothers("a")
    [(type_, data)] = q1.said()
    assert (type_, data["what"]) == ("box.warning", "claimed_elsewhere")
    assert "a is claimed by q2 on box-b" in data["text"]
    assert q1.claims.not_verified() == {"a"}


def test_a_cell_that_was_moved_here_says_from_where(q1: Queue1) -> None:
    q1.claimed_by("q1", moved_from="q2")
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    [(type_, data)] = q1.said()
    assert (type_, data["cell"], data["from"]) == ("cell.claimed", "a", "q2")


def test_a_cell_that_was_moved_away_after_it_began_is_skipped_in_the_journal(q1: Queue1) -> None:
    q1.claims.take("a", None)
    q1.claimed_by("q2", moved_from="q1")
    assert q1.claims.leave_what_is_anothers("a")
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed", "box.warning", "cell.skipped"]


def test_a_claim_and_its_name_are_on_the_disk_before_the_journal_says_so(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    monkeypatch.setattr(atomic, "sync_folder", done.append)
    monkeypatch.setattr(q1.claims, "_say", lambda type_, **more: done.append(type_))
    q1.claims.take("a", None)
    assert done == [q1.tier.claims, "cell.claimed"]


def test_what_an_agent_claimed_that_was_killed_is_made_durable_and_said(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    q1.claimed_by("q1")
    synced: list[Path] = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    assert synced[0] == q1.tier.claims
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed"]


def test_a_claim_that_could_not_be_written_is_none(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(atomic, "_write_beside", failing)
        with pytest.raises(OSError, match="failed"):
            q1.claims.take("a", None)
    assert not [*q1.tier.claims.iterdir()]
    assert q1.said() == []


def failing(*_: object) -> None:
    raise OSError(errno.EIO, "it failed")


def left_by_a_power_cut(q1: Queue1, queue: str) -> None:
    """As agents of one day made claims beforehand: without a cell, filled up with blanks."""
    atomic.write_whole(q1.tier.claim("a"), codec.to_document(Claim("", queue, "box-b", AT)))


@pytest.mark.parametrize("started", [None, "c" * 64])
def test_after_a_power_cut_its_own_is_ours_and_says_of_which_cell_and_what_it_was_again(
    q1: Queue1, started: str | None
) -> None:
    left_by_a_power_cut(q1, "q1")
    found = attempt.read_claim(q1.tier.claim("a"))
    assert found and (found.cell, found.queue) == ("", "q1")
    if started:
        q1.reporter.say("cell.started", cell="a", attempt=1, saying=started)
    claim = q1.claims.take("a", "b" * 64)
    assert claim and (claim.cell, claim.saying) == ("a", started or "b" * 64)
    assert attempt.read_claim(q1.tier.claim("a")) == claim


def test_after_a_power_cut_anothers_stays_anothers(q1: Queue1) -> None:
    left_by_a_power_cut(q1, "q2")
    assert q1.claims.take("a", None) is None
    assert q1.claims.leave_what_is_anothers("a")
