"""A pool under a pretended Slurm: a job has ended, and others go on with what it had begun."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pretended import RELEASE, Pretended

from boxcar.shared.disk import atomic
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import attempt, codec, journal
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal import Journal
from boxcar.shared.slurm import lease
from boxcar.shared.slurm.lease import Lease
from boxcar.shared.slurm.submitted import Submit
from boxcar.shared.state import CellRecord, Claimed, Failed, Running, Verified, Waiting
from onbox.machine.place import Place
from onbox.machine.room_wait import RoomWait
from onbox.queue.claims import Claims
from onbox.queue.given_back import goes_on
from onbox.queue.reporter import Reporter
from onbox.slurm import ownership

AT = "2026-11-29T01:00:00.000Z"
TOKEN = "0" * 16
GONE, OURS = "q@box-a", "q@box-b"


class Pool:
    """box-b's member, and what box-a's has left: cell `a` runs there, `b` is claimed."""

    def __init__(self, slurm: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slurm, self.tier = slurm, slurm.tier
        for folder in self.tier.folders():
            folder.mkdir(parents=True, exist_ok=True)
        queues = {"0": GONE, "1": OURS}
        record = Submit(TOKEN, RELEASE, "run_slurm.sh", queues, AT, "h", 1, "", True, "7")
        atomic.make_folder(self.tier.slurm_submit(TOKEN).parent)
        atomic.write_whole(self.tier.slurm_submit(TOKEN), codec.to_document(record))
        atomic.make_folder(self.tier.slurm_leases(GONE))
        atomic.create_once(
            lease.path(self.tier.slurm_leases(GONE), 1),
            codec.to_document(Lease(GONE, "7", "0", 0, "n1", AT)),
        )
        said = Reporter(Journal(self.tier.journal(GONE), self._common(GONE)), None)
        for cell in ("a", "b"):
            claim = Claim(cell, GONE, "box-a", AT)
            atomic.create_once(self.tier.claim(cell), codec.to_document(claim))
            said.say("cell.claimed", cell=cell)
        said.say("cell.started", cell="a", attempt=1)
        self.of_gone = said
        monkeypatch.setenv("BOXCAR_SLURM", "1")
        monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
        self.reporter = Reporter(Journal(self.tier.journal(OURS), self._common(OURS)), None)
        place = cast(Place, SimpleNamespace(durable=self.tier, queue=OURS, box="box-b"))
        room = RoomWait(0, lambda wait_s: None, lambda: True, lambda text: None)
        self.claims = Claims(place, self.reporter, room, self.reporter.say)
        assert self.claims.pass_over("a") and self.claims.pass_over("b")

    @staticmethod
    def _common(queue: str) -> dict[str, str]:
        return {"run": "digits", "queue": queue, "box": queue.partition("@")[2]}

    def has(self, state: str) -> None:
        self.slurm.has(f"7|0|7_0|{state}|N/A|n1|None", "7|1|7_1|RUNNING|N/A|n2|None")
        self.slurm.later()

    def owner(self, cell: str) -> tuple[str, str | None]:
        found = attempt.read_claim(self.tier.claim(cell))
        assert found
        return found.queue, found.moved_from

    def leases(self) -> list[Lease]:
        folder = self.tier.slurm_leases(GONE)
        found = [lease.read_lease(lease.path(folder, n)) for n in lease.numbers_in(folder)]
        return [one for one in found if one]


@pytest.fixture
def pool(slurm: Pretended, monkeypatch: pytest.MonkeyPatch) -> Pool:
    return Pool(slurm, monkeypatch)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    return Pretended(tmp_path / "s", monkeypatch)


def test_while_its_job_runs_waits_or_is_unknown_a_member_keeps_its_cells(pool: Pool) -> None:
    for state in ("RUNNING", "PENDING", "COMPLETING", "SUSPENDED"):
        pool.has(state)
        assert not pool.claims.take_back(at_once=True)
        assert pool.claims.pass_over("a")
    pool.slurm.mood("squeue", "silent")
    pool.has("NODE_FAIL")
    assert not pool.claims.take_back(at_once=True)
    assert pool.owner("a") == (GONE, None)


def test_once_its_job_has_ended_a_cell_is_taken_when_its_turn_comes_and_it_is_said(
    pool: Pool,
) -> None:
    pool.has("NODE_FAIL")
    assert pool.claims.take_back(at_once=True)
    assert not pool.claims.take_back(at_once=True), "what was found is not found again"
    assert not pool.claims.pass_over("a") and pool.owner("a") == (GONE, None)
    claim = pool.claims.take("a", None)
    assert claim and pool.owner("a") == (OURS, GONE)
    assert pool.owner("b") == (GONE, None), "others may take it"
    events = journal.read_journal(pool.tier.journal(OURS)).events
    warned, claimed = events
    assert "a: the Slurm job of q@box-a has ended (NODE_FAIL)" in warned.data["text"]
    assert (claimed.type, claimed.data["from"]) == ("cell.claimed", GONE)
    first, taken = pool.leases()
    assert taken.gives_back and taken.ended_at and not first.gives_back


def test_squeue_is_not_asked_with_each_look(pool: Pool) -> None:
    pool.has("RUNNING")
    pool.claims.take_back(at_once=True)
    before = len(pool.slurm.calls("squeue"))
    for _ in range(5):
        pool.claims._looked_at = -1000.0
        pool.claims.take_back()
    assert len(pool.slurm.calls("squeue")) == before


def test_a_job_that_slurm_starts_again_meanwhile_keeps_its_cell(pool: Pool) -> None:
    pool.has("NODE_FAIL")
    assert pool.claims.take_back(at_once=True)
    pool.has("PENDING")
    assert pool.claims.take("a", None) is None
    assert pool.owner("a") == (GONE, None) and len(pool.leases()) == 1
    assert pool.claims.pass_over("a")


def test_of_two_who_take_it_one_gets_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.has("NODE_FAIL")
    assert pool.claims.take_back(at_once=True)
    make = atomic.create_once

    def another_is_quicker(path: Path, data: bytes) -> bool:
        if path.parent == pool.tier.slurm_leases(GONE):
            theirs = Lease(GONE, "7", "2", 0, "n3", AT, gives_back=True)
            make(path, codec.to_document(theirs))
        return make(path, data)

    monkeypatch.setattr(atomic, "create_once", another_is_quicker)
    assert pool.claims.take("a", None) is None
    assert pool.owner("a") == (GONE, None)


def test_an_agent_whose_cells_were_taken_owns_its_queue_no_more(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node was lost to Slurm, and it ran on there."""
    folder = pool.tier.slurm_leases(GONE)
    zombie = ownership.Owned(folder, 1, pool.leases()[0])
    assert zombie.is_ours()
    pool.has("NODE_FAIL")
    assert pool.claims.take_back(at_once=True) and pool.claims.take("a", None)
    assert not zombie.is_ours()


def as_job(monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", job)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")


def test_its_next_agent_has_the_queue_and_knows_how_its_own_job_ended(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.has("NODE_FAIL")
    assert pool.claims.take_back(at_once=True) and pool.claims.take("a", None)
    as_job(monkeypatch, "8")
    owned = ownership.take(pool.tier, GONE, patience_s=0)
    assert owned.is_ours() and owned.before == "NODE_FAIL"


def test_its_next_agent_waits_while_a_cell_is_taken_and_not_for_a_taker_that_is_gone(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking = replace(pool.leases()[0], task="1", gives_back=True)
    path = lease.path(pool.tier.slurm_leases(GONE), 2)
    atomic.create_once(path, codec.to_document(taking))
    pool.has("NODE_FAIL")
    as_job(monkeypatch, "8")
    with pytest.raises(TemporaryError, match="Slurm's job 7_1"):
        ownership.take(pool.tier, GONE, patience_s=0)
    pool.slurm.has("7|0|7_0|NODE_FAIL|N/A|n1|None", "7|1|7_1|FAILED|N/A|n2|None")
    assert ownership.take(pool.tier, GONE, patience_s=0).is_ours()


def test_what_has_failed_there_or_is_published_is_not_begun_again(pool: Pool) -> None:
    pool.of_gone.say("cell.failed", cell="a", attempt=1, failure="X", reason="", release=RELEASE)
    pool.tier.manifest("b").parent.mkdir(parents=True)
    pool.tier.manifest("b").write_bytes(b"{}")
    pool.has("COMPLETED")
    assert not pool.claims.take_back(at_once=True)
    assert pool.owner("a") == pool.owner("b") == (GONE, None)


def test_a_queue_that_slurm_did_not_start_asks_it_nothing(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOXCAR_SLURM")
    pool.has("NODE_FAIL")
    assert not pool.claims.take_back(at_once=True)
    assert not pool.slurm.calls("squeue")


RUNS = CellRecord(Running(1, AT))
NEW, MOVED = Claim("a", GONE, "box-a", AT), Claim("a", GONE, "box-a", AT, moved_from="q@box-c")


@pytest.mark.parametrize(
    ("how", "record", "claim", "is_to_go_on"),
    [
        ("CANCELLED", RUNS, MOVED, True),
        ("FAILED", RUNS, NEW, True),
        ("FAILED", RUNS, MOVED, False),  # it may be the cell that ends its jobs
        ("FORGOTTEN", RUNS, MOVED, False),
        ("FAILED", CellRecord(Claimed(AT)), MOVED, True),
        ("OUT_OF_MEMORY", RUNS, NEW, False),
        ("OUT_OF_MEMORY", CellRecord(Claimed(AT)), NEW, True),
        ("NODE_FAIL", CellRecord(Waiting(1, AT, "X")), NEW, True),
        ("NODE_FAIL", CellRecord(Failed(1, AT, "X", "", RELEASE, False)), NEW, False),
        ("NODE_FAIL", CellRecord(Verified(1, AT, "0")), NEW, False),
    ],
)
def test_which_cells_another_member_goes_on_with(
    how: str, record: CellRecord, claim: Claim, is_to_go_on: bool
) -> None:
    assert goes_on(how, record, claim) is is_to_go_on
