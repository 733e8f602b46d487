from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from boxcar.shared.disk import atomic
from boxcar.shared.files import cell_claim, codec, journal
from boxcar.shared.files.cell_claim import Claim
from boxcar.shared.files.journal import Journal
from boxcar.shared.paths import DurablePaths
from onbox.agent.queue.claims import Claims
from onbox.agent.reporter import Reporter
from onbox.agent.room_wait import RoomWait
from onbox.place import Place

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
        events = journal.read(self.tier.journal("q1")).events
        return [(event.type, event.data) for event in events]


@pytest.fixture
def q1(tmp_path: Path) -> Queue1:
    return Queue1(tmp_path)


def test_a_cell_that_nobody_has_is_claimed_once_and_stays_ours(q1: Queue1) -> None:
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    owner = cell_claim.read(q1.tier.claim("a"))
    assert owner and (owner.queue, owner.box) == ("q1", "box-a")
    q1.reporter.flush()
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


def test_what_was_claimed_is_made_durable_once_by_whoever_may_have_been_killed_before(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    q1.claims.make_durable()
    assert synced == []
    q1.claims.take("a", None)
    assert synced == []
    q1.claims.make_durable()
    q1.claims.make_durable()
    assert synced == [q1.tier.claims]
    again = Claims(q1.claims._place, q1.reporter, q1.claims._room, q1.reporter.say)
    assert again.take("a", None)
    again.make_durable()
    assert synced == [q1.tier.claims] * 2


# --- made beforehand


def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: pytest.fail("waits for the disk"))


def test_one_that_was_made_beforehand_is_claimed_without_a_wait_for_the_disk(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    q1.claims.prepare()
    with monkeypatch.context() as patched:
        no_fsync(patched)
        claim = q1.claims.take("a", "b" * 64)
        assert claim and cell_claim.read(q1.tier.claim("a")) == claim
    assert (claim.cell, claim.queue, claim.box, claim.saying) == ("a", "q1", "box-a", "b" * 64)
    q1.claims.take("b", "b" * 64)  # none was made beforehand
    both = [q1.tier.claim(cell).read_bytes() for cell in "ab"]
    assert len(both[0]) == len(both[1]) == 512
    q1.claims.close()
    assert sorted(path.name for path in q1.tier.claims.iterdir()) == ["a.json", "b.json"]
    assert not [*q1.tier.lock("q1").parent.iterdir()]


def test_what_it_says_and_its_name_are_made_durable_before_anything_is_said_of_its_end(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    q1.claims.prepare()
    q1.claims.take("a", None)
    monkeypatch.setattr(atomic, "sync_file", synced.append)
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    q1.claims.make_durable()
    q1.claims.make_durable()
    assert synced == [q1.tier.claim("a"), q1.tier.claims]


def failing(*_: object) -> None:
    raise OSError(errno.EIO, "it failed")


def fails_to_be_durable(q1: Queue1, monkeypatch: pytest.MonkeyPatch) -> None:
    q1.claims.prepare()
    assert q1.claims.take("a", "b" * 64)
    with monkeypatch.context() as patched:
        patched.setattr(atomic, "sync_file", failing)
        with pytest.raises(OSError, match="failed"):
            q1.claims.make_durable()


def test_after_an_fsync_that_failed_it_is_written_anew_because_the_next_one_proves_nothing(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_to_be_durable(q1, monkeypatch)
    path = q1.tier.claim("a")
    before, inode = path.read_bytes(), path.stat().st_ino
    q1.claims.make_durable()
    assert path.read_bytes() == before and path.stat().st_ino != inode
    inode = path.stat().st_ino
    q1.claims.make_durable()
    q1.claims.take("a", "b" * 64)
    q1.claims.make_durable()
    assert path.stat().st_ino == inode


def test_a_claim_that_the_tier_lost_before_it_was_durable_is_made_again(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_to_be_durable(q1, monkeypatch)
    q1.tier.claim("a").unlink()
    q1.claims.make_durable()
    claim = cell_claim.read(q1.tier.claim("a"))
    assert claim and (claim.queue, claim.saying) == ("q1", "b" * 64)


def test_one_that_was_moved_before_it_was_durable_stays_with_its_new_queue(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_to_be_durable(q1, monkeypatch)
    q1.claimed_by("q2", moved_from="q1")
    q1.claims.make_durable()
    assert cell_claim.of_another(q1.tier.claim("a"), "q1")


def test_another_queues_cell_is_not_touched_by_one_that_was_made_beforehand(q1: Queue1) -> None:
    q1.claimed_by("q2")
    before = q1.tier.claim("a").read_bytes()
    q1.claims.prepare()
    assert q1.claims.take("a", None) is None
    assert q1.tier.claim("a").read_bytes() == before
    q1.claims.close()
    assert [path.name for path in q1.tier.claims.iterdir()] == ["a.json"]


def test_a_claim_that_is_longer_than_a_sector_is_created_as_ever(tmp_path: Path) -> None:
    q1 = Queue1(tmp_path, box="b" * 100)
    cell = "é" * 100
    q1.claims.prepare()
    assert q1.claims.take(cell, "b" * 64)
    assert q1.tier.claim(cell).stat().st_size > 512
    claim = cell_claim.read(q1.tier.claim(cell))
    assert claim and (claim.cell, claim.box, claim.saying) == (cell, "b" * 100, "b" * 64)


def left_by_a_power_cut(q1: Queue1, queue: str) -> None:
    """The name is on the disk, and what was filled in is not."""
    other = Claims(
        cast(Place, SimpleNamespace(durable=q1.tier, queue=queue, box="box-a")),
        *(q1.reporter, q1.claims._room, q1.reporter.say),
    )
    other.prepare()
    [laid] = q1.tier.lock(queue).parent.glob("*.part")
    laid.rename(q1.tier.claim("a"))


@pytest.mark.parametrize("started", [None, "c" * 64])
def test_after_a_power_cut_its_own_is_ours_and_says_of_which_cell_and_what_it_was_again(
    q1: Queue1, started: str | None
) -> None:
    left_by_a_power_cut(q1, "q1")
    found = cell_claim.read(q1.tier.claim("a"))
    assert found and (found.cell, found.queue) == ("", "q1")
    if started:
        q1.reporter.say("cell.started", cell="a", attempt=1, saying=started)
    claim = q1.claims.take("a", "b" * 64)
    assert claim and (claim.cell, claim.saying) == ("a", started or "b" * 64)
    assert cell_claim.read(q1.tier.claim("a")) == claim


def test_what_an_agent_claimed_that_was_killed_before_it_could_say_so_is_said(q1: Queue1) -> None:
    q1.claimed_by("q1")
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    q1.reporter.flush()
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed"]


def test_a_claim_that_the_tier_made_and_denied_is_ours_and_said(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def denied(source: str, target: Path) -> None:
        link(source, target)
        monkeypatch.setattr(os, "link", link)
        raise OSError(errno.EIO, "no answer")

    q1.claims.prepare()
    monkeypatch.setattr(os, "link", denied)
    assert q1.claims.take("a", None)
    q1.reporter.flush()
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed"]


def test_after_a_power_cut_anothers_stays_anothers(q1: Queue1) -> None:
    left_by_a_power_cut(q1, "q2")
    assert q1.claims.take("a", None) is None
    assert q1.claims.leave_what_is_anothers("a")


def test_a_tier_that_is_full_for_a_moment_prepares_none_and_the_next_claim_waits_for_room(
    q1: Queue1, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(atomic, "write_beside", failing)
        q1.claims.prepare()
    assert not [*q1.tier.lock("q1").parent.iterdir()]
    assert q1.claims.take("a", None)
