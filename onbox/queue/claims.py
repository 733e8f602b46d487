"""Which cells are this queue's: the claims on the durable tier, and those that it has lost.

A cell belongs to the queue that claimed it first, or to which a person moved it since. In a pool
that another member has one is how it should be: it is passed over without a word, and looked at
again before the queue ends, as a person may have given it back, or the end of its Slurm job.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from boxcar.shared import names, state, timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import attempt, codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.sentence import _
from onbox.machine.place import Place
from onbox.machine.room_wait import RoomWait
from onbox.queue.given_back import GivenBack
from onbox.queue.reporter import Reporter
from onbox.result import published

# How often the claims of other members' unfinished cells are read again.
LOOK_AGAIN_S = 5.0


class Claims:
    """`say` writes an event, once there is room for it."""

    def __init__(
        self, place: Place, reporter: Reporter, room: RoomWait, say: Callable[..., None]
    ) -> None:
        self._place = place
        self._reporter = reporter
        self._room = room
        self._say = say
        self.of_others: set[str] = set()
        self.of_members: set[str] = set()  # of the same pool
        self._published: set[str] = set()  # of these; they stay where they are
        self._ended_jobs = GivenBack(place)
        self._to_take: set[str] = set()  # of members whose jobs have ended
        self._looked_at = -LOOK_AGAIN_S

    @property
    def is_in_pool(self) -> bool:
        return names.is_member(self._place.queue)

    def pass_over(self, cell: str) -> bool:
        """Whether another member of the pool has the cell, which is remembered."""
        if not self.is_in_pool or cell in self._to_take:
            return False
        if cell not in self.of_members and (owner := self._member(cell)):
            self._leave(cell, owner)
        return cell in self.of_members

    def take_back(self, *, at_once: bool = False) -> bool:
        """Forget which of the members' cells are theirs no more; whether there were any."""
        now, tier = time.monotonic(), self._place.durable
        if now - self._looked_at < LOOK_AGAIN_S and not at_once:
            return False
        self._looked_at = now
        begun = self.of_members - self._published
        self._published |= {cell for cell in begun if tier.manifest(cell).exists()}
        owners = {cell: self._member(cell) for cell in begun - self._published}
        theirs = {cell: owner for cell, owner in owners.items() if owner}
        given_back = self._ended_jobs.look(theirs, at_once=at_once)
        self._to_take |= given_back
        back = owners.keys() - theirs.keys() | given_back
        self.of_members -= back
        return bool(back)

    def _member(self, cell: str) -> Claim | None:
        """The claim of another member."""
        owner = attempt.claim_of_another(self._place.durable.claim(cell), self._place.queue)
        return owner if owner and self._is_member(owner) else None

    def _is_member(self, owner: Claim) -> bool:
        is_one = names.file_of(owner.queue) == names.file_of(self._place.queue)
        return self.is_in_pool and is_one

    def take(self, cell: str, saying: str | None) -> Claim | None:
        """Claim the cell on the durable tier, or find that it is; None where it is another queue's.
        A claim that is returned is on the disk, and in the journal.

        `saying` is what its line asks for, as far as that is known.
        """
        path, now = self._place.durable.claim(cell), timestamp.utc_now()
        claim = Claim(cell, self._place.queue, self._place.box, now, saying=saying)
        is_new_here = isinstance(self._reporter.record(cell).state, state.Queued)
        if not self._room.through(lambda: atomic.create_once(path, codec.to_document(claim))):
            owner = self._of_ended_job(cell) or attempt.read_claim(path)
            if owner is None or owner.queue != self._place.queue:
                self._leave(cell, owner)
                return None
            claim = self._found(owner, cell, saying)
        if is_new_here:  # else a power cut took the claim of a cell that had begun
            self._say("cell.claimed", cell=cell, **{"from": claim.moved_from})
        return claim

    def _of_ended_job(self, cell: str) -> Claim | None:
        """The claim that another member's job has left and that is this queue's now."""
        if cell not in self._to_take:
            return None
        self._to_take.discard(cell)
        before = self._member(cell)
        taken = self._room.through(lambda: before and self._ended_jobs.take(cell, before.queue))
        if not before or not taken:
            return None
        text = _(
            "{cell}: the Slurm job of {queue} has ended ({how}), so this box goes on with it",
            cell=cell,
            queue=before.queue,
            how=taken.how,
        )
        self._reporter.warn("given_back", text, cell)
        return taken.claim

    def _found(self, owner: Claim, cell: str, saying: str | None) -> Claim:
        """Whoever claimed it may have been killed before it was durable."""
        if owner.cell == attempt.OF_NO_CELL:
            owner = replace(owner, cell=cell, saying=self._said(cell, saying))
            self._write(owner)
        atomic.sync_folder(self._place.durable.claims)
        return owner

    def _said(self, cell: str, now: str | None) -> str | None:
        """What its line asked for when it was started last; where it was not, what it asks now."""
        started = self._reporter.last("cell.started", cell)
        return started.data.get("saying") if started else now

    def of(self, cell: str) -> Claim | None:
        return attempt.read_claim(self._place.durable.claim(cell))

    def renew(self, claim: Claim, saying: str | None) -> None:
        """The claim is this queue's; its cell begins anew, as its line says now."""
        self._write(replace(claim, saying=saying))

    def _write(self, claim: Claim) -> None:
        path = self._place.durable.claim(claim.cell)
        self._room.through(lambda: atomic.write_whole(path, codec.to_document(claim)))

    def leave_what_is_anothers(self, cell: str) -> bool:
        """Whether another queue has the cell, which is said, and then skipped here."""
        owner = attempt.claim_of_another(self._place.durable.claim(cell), self._place.queue)
        if owner:
            self._leave(cell, owner)
        return owner is not None

    def not_verified(self) -> set[str]:
        """The cells of other queues that have not come to a good end there."""
        tier = self._place.durable
        return {cell for cell in self.of_others if not published.is_verified(tier, cell)}

    def _leave(self, cell: str, owner: Claim | None) -> None:
        known = self.of_members if owner and self._is_member(owner) else self.of_others
        if cell in known:
            return
        known.add(cell)
        text = _(
            "{cell} was claimed by an agent that has just released it; skipped here", cell=cell
        )
        if owner:
            text = _(
                "{cell} is claimed by {queue} on {box}; it is skipped here",
                cell=cell,
                queue=owner.queue,
                box=owner.box,
            )
        if known is self.of_others:
            self._reporter.warn("claimed_elsewhere", text, cell)
        if self._reporter.record(cell) != state.NOTHING_YET:
            self._say("cell.skipped", cell=cell, reason=text)
