"""Which cells are this queue's: the claims on the durable tier, and those that it has lost.

A cell belongs to the queue that claimed it first, or to which a person moved it since.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from boxcar.shared import state, timestamp
from boxcar.shared.disk import atomic, blank
from boxcar.shared.disk.blank import Blank
from boxcar.shared.files import cell_claim, codec
from boxcar.shared.files.cell_claim import Claim
from onbox.agent.reporter import Reporter
from onbox.agent.room_wait import RoomWait
from onbox.cell import published
from onbox.place import Place


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
        # Not among the claims, which may be many.
        self._blank = Blank(place.durable.lock(place.queue).with_name(f"{place.queue} next claim"))
        self._not_durable: Claim | None = None
        self._has_failed = False

    def take(self, cell: str, saying: str | None) -> Claim | None:
        """Claim the cell on the durable tier, or find that it is; None where it is another queue's.

        `saying` is what its line asks for, as far as that is known. `make_durable` follows before
        anything is said of what came of it.
        """
        path = self._place.durable.claim(cell)
        claim = replace(self._of_no_cell(), cell=cell, saying=saying)
        data = _document(claim)
        is_new_here = isinstance(self._reporter.record(cell).state, state.Queued)
        if self._blank.become(path, data) or self._room.through(
            lambda: atomic.create_once(path, data, syncs_folder=False)
        ):
            self._not_durable = claim
            if is_new_here:  # else a power cut took the claim of a cell that had begun
                # With what follows: the claim itself lies on the tier.
                self._reporter.hold("cell.claimed", cell=cell)
            return claim
        owner = cell_claim.read(path)
        if owner is None or owner.queue != self._place.queue:
            self._leave(cell, owner)
            return None
        if owner.cell == cell_claim.OF_NO_CELL:
            owner = replace(owner, cell=cell, saying=self._said(cell, saying))
            self._write(owner)
        self._not_durable = owner  # perhaps: whoever claimed it may have been killed
        if is_new_here and owner.moved_from:
            self._say("cell.claimed", cell=cell, **{"from": owner.moved_from})
        elif is_new_here:  # whoever claimed it could not say so
            self._reporter.hold("cell.claimed", cell=cell)
        return owner

    def _said(self, cell: str, now: str | None) -> str | None:
        """What its line asked for when it was started last; where it was not, what it asks now."""
        started = self._reporter.last("cell.started", cell)
        return started.data.get("saying") if started else now

    def make_durable(self) -> None:
        """The claim that was taken last. Its name is on the disk by then, where that keeps things
        in their order: as local ones do, whose event that the cell has started was just written.
        What it says is not, for one that was made beforehand. Raises OSError.
        """
        if (claim := self._not_durable) is None:
            return
        try:
            if self._has_failed:
                self._write_anew(claim)
            else:
                path = self._place.durable.claim(claim.cell)
                atomic.sync_file(path)
                atomic.sync_folder(path.parent)
        except OSError:
            self._has_failed = True  # after which an fsync that succeeds proves nothing
            raise
        self._not_durable, self._has_failed = None, False

    def _write_anew(self, claim: Claim) -> None:
        path, data = self._place.durable.claim(claim.cell), _document(claim)
        is_new = atomic.create_once(path, data)  # where the tier has lost it
        if not is_new and cell_claim.of_another(path, self._place.queue) is None:
            atomic.write_whole(path, data)

    def prepare(self) -> None:
        """While nobody waits: what the next claim is written into lies on the disk, then. Until it
        is it says that it is this queue's, of no cell.
        """
        with contextlib.suppress(OSError):  # then it is created at its turn
            self._blank.lay(_document(self._of_no_cell()))

    def close(self) -> None:
        """Nothing that was prepared is left."""
        self._blank.drop()

    def _of_no_cell(self) -> Claim:
        now = timestamp.utc_now()
        return Claim(cell_claim.OF_NO_CELL, self._place.queue, self._place.box, now)

    def of(self, cell: str) -> Claim | None:
        return cell_claim.read(self._place.durable.claim(cell))

    def renew(self, claim: Claim, saying: str | None) -> None:
        """The claim is this queue's; its cell begins anew, as its line says now."""
        self._write(replace(claim, saying=saying))

    def _write(self, claim: Claim) -> None:
        path = self._place.durable.claim(claim.cell)
        self._room.through(lambda: atomic.write_whole(path, _document(claim)))

    def leave_what_is_anothers(self, cell: str) -> bool:
        """Whether another queue has the cell, which is said, and then skipped here."""
        owner = cell_claim.of_another(self._place.durable.claim(cell), self._place.queue)
        if owner:
            self._leave(cell, owner)
        return owner is not None

    def not_verified(self) -> set[str]:
        """The cells of other queues that have not come to a good end there."""
        tier = self._place.durable
        return {cell for cell in self.of_others if not published.is_verified(tier, cell)}

    def _leave(self, cell: str, owner: Claim | None) -> None:
        if cell in self.of_others:
            return
        self.of_others.add(cell)
        holder = f"{owner.queue} on {owner.box}" if owner else "an agent that has just released it"
        text = f"{cell} is claimed by {holder}; it is skipped here"
        self._reporter.warn("claimed_elsewhere", text, cell)
        if self._reporter.record(cell) != state.NOTHING_YET:
            self._say("cell.skipped", cell=cell, reason=text)


def _document(claim: Claim) -> bytes:
    return codec.to_document(claim, blank.SIZE_BYTES)
