"""What the other members of a pool give back on Slurm: a cell that one has begun goes to another
once its job has ended, in Slurm's own words. Where these are missing the cell stays where it is.

It is taken when its turn comes, one at a time, so that those who are left share out what there is.
Meanwhile the queue that had it is this job's (`ownership.take_of_ended`), and of two who take it at
the same moment one gets it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from boxcar.shared import state, timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import attempt, codec, journal
from boxcar.shared.files.attempt import Claim
from boxcar.shared.record import dataclass
from boxcar.shared.slurm import lease
from boxcar.shared.slurm.submitted import FRESH_S
from boxcar.shared.state import CellRecord, Failed, Running, Synced, Verified
from onbox.machine.place import Place
from onbox.slurm import ended, ownership, squeue

_NO_MEMORY = "OUT_OF_MEMORY"
# The cell that ran may have ended the job.
_PERHAPS_ITS_CELL = ("FAILED", ended.FORGOTTEN)


@dataclass(frozen=True)
class Taken:
    """`how` the job ended that had the cell, in Slurm's words."""

    claim: Claim
    how: str


class GivenBack:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._asked_at = -FRESH_S

    def look(self, begun: Mapping[str, Claim], *, at_once: bool) -> set[str]:
        """Which of these cells their queues seem to give back; squeue is asked seldom."""
        now = time.monotonic()
        is_asked = at_once or now - self._asked_at >= FRESH_S
        if not begun or not is_asked or not ownership.is_ours_to_take():
            return set()
        self._asked_at = now
        with contextlib.suppress(BoxcarError, OSError):
            return set(self._given_back(begun, is_exact=at_once))
        return set()

    def _given_back(self, begun: Mapping[str, Claim], *, is_exact: bool) -> Iterator[str]:
        tier = self._place.durable
        seen = squeue.look(tier, is_exact=is_exact)
        for queue in {claim.queue for claim in begun.values()} if not seen.problem else ():
            folder = tier.slurm_leases(queue)
            owner = lease.owner_until(folder, lease.newest(folder)[0])
            how = ended.of_queue(owner, seen.tasks) if owner else None
            if how is None:
                continue
            found = state.replay(journal.read_journal(tier.journal(queue)).events)
            for cell, claim in begun.items():
                if claim.queue == queue and goes_on(how, found.cell(cell), claim):
                    yield cell

    def take(self, cell: str, queue: str) -> Taken | None:
        """The cell, which that queue has begun; None where it stays there. Raises OSError where the
        claim could not be written.
        """
        tier = self._place.durable
        with contextlib.suppress(BoxcarError):
            if (taken := ownership.take_of_ended(tier, queue)) is not None:
                held, how = taken
                try:
                    return self._take(cell, queue, how)
                finally:
                    held.end()
        return None

    def _take(self, cell: str, queue: str, how: str) -> Taken | None:
        tier = self._place.durable
        found = state.replay(journal.read_journal(tier.journal(queue)).events)
        there = attempt.read_claim(tier.claim(cell))
        is_theirs = there is not None and there.queue == queue
        if there is None or not is_theirs or tier.manifest(cell).exists():
            return None
        if not goes_on(how, found.cell(cell), there):
            return None
        now, place = timestamp.utc_now(), self._place
        mine = replace(there, queue=place.queue, box=place.box, at=now, moved_from=queue)
        atomic.write_whole(tier.claim(cell), codec.to_document(mine))
        return Taken(mine, how)


def goes_on(how: str, record: CellRecord, claim: Claim) -> bool:
    """Whether another member may go on with a cell whose job ended so. Pure.

    What has failed or is published is its own queue's. A cell that may have ended its job itself is
    tried by one more member; one whose memory did not suffice by none: its next agent fails it.
    """
    if isinstance(record.state, (Failed, Synced, Verified)):
        return False
    if not isinstance(record.state, Running):
        return True
    if how == _NO_MEMORY:
        return False
    return how not in _PERHAPS_ITS_CELL or claim.moved_from is None
