"""Which cells are this queue's: the claims on the durable tier, and those that it has lost.

A cell belongs to the queue that claimed it first, or to which a person moved it since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from boxcar.shared import state, timestamp
from boxcar.shared.disk import atomic
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
        self._is_folder_synced = True

    def take(self, cell: str, saying: str | None) -> Claim | None:
        """Claim the cell on the durable tier, or find that it is; None where it is another queue's.

        `saying` is what its line asks for, as far as that is known. `make_durable` follows before
        anything is said of what came of it.
        """
        path = self._place.durable.claim(cell)
        now = timestamp.utc_now()
        claim = Claim(cell, self._place.queue, self._place.box, now, saying=saying)
        data = codec.to_document(claim)
        is_new_here = isinstance(self._reporter.record(cell).state, state.Queued)
        if self._room.through(lambda: atomic.create_once(path, data, syncs_folder=False)):
            self._is_folder_synced = False
            if is_new_here:  # else a power cut took the claim of a cell that had begun
                # With what follows: the claim itself lies on the tier.
                self._reporter.hold("cell.claimed", cell=cell)
            return claim
        owner = cell_claim.read(path)
        if owner is None or owner.queue != self._place.queue:
            self._leave(cell, owner)
            return None
        self._is_folder_synced = False  # perhaps not: whoever claimed it may have been killed
        if is_new_here and owner.moved_from:
            self._say("cell.claimed", cell=cell, **{"from": owner.moved_from})
        return owner

    def make_durable(self) -> None:
        """The name of a claim, which the disk has by then, where it keeps things in their order: as
        local ones do, whose event that the cell has started was just written. Raises OSError.
        """
        if not self._is_folder_synced:
            atomic.sync_folder(self._place.durable.claims)
            self._is_folder_synced = True

    def of(self, cell: str) -> Claim | None:
        return cell_claim.read(self._place.durable.claim(cell))

    def renew(self, claim: Claim, saying: str | None) -> None:
        """The claim is this queue's; its cell begins anew, as its line says now."""
        renewed = replace(claim, saying=saying)
        path = self._place.durable.claim(claim.cell)
        self._room.through(lambda: atomic.write_whole(path, codec.to_document(renewed)))

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
