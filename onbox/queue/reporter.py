"""What happened, said once: into the journal first, then to the webhooks that read it.

Both the agent's loop and the thread that settles results speak through here.
"""

from __future__ import annotations

import json
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from boxcar.shared import event_words, state
from boxcar.shared.cell import cell_line
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import DamagedError, message_of
from boxcar.shared.files.journal import Journal, JournalEnd, read_journal
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news.wanted import NEEDS, needed_command
from boxcar.shared.sentence import _
from boxcar.shared.state import CellRecord, State
from onbox.judging import classify
from onbox.machine.credentials import BoxSecrets
from onbox.webhooks.deliver import Deliverer

# Of an event: what others find by it, and a line as a person wrote it. All else may be the words of
# a script, and holds no secret.
_EXACT = {
    *("cell", "attempt", "release", "manifest_sha256", "failure", "class", "what", "by", "from"),
    *("cfg", "task", "own", "overrides", "saying", "start_cell", "aside", "unpickled"),
}
# Of these the newest about each cell is asked for; of the last two where results are copied to a
# second home.
KEPT = ("cell.retried", "cell.started", "cell.succeeded")
OF_COPIES = ("cell.copied", "cell.synced")


class Remembered:
    """What the agent needs of its journal's events, which it does not keep. It is brought up to
    each event as that is written, so that no cell costs a walk over those before.

    `newest` is by type, of KEPT or OF_COPIES, and cell; `begun` says how each cell was started
    last, here or on a box whose result was lent to this one; `started_from` which cell last, by
    release and slot. `is_copied`: whether OF_COPIES is asked for.
    """

    def __init__(self, events: Iterable[Event] = (), *, is_copied: bool = False) -> None:
        packing = Packing()
        kept = (*KEPT, *OF_COPIES) if is_copied else KEPT
        self.newest = {type: PackedEvents(packing) for type in kept}
        self.begun = PackedEvents(packing)
        self.started_from: dict[tuple[str, int], str] = {}
        self.largest_result_bytes = 0
        self._warned: set[tuple[str, str]] = set()
        self._ended_early: dict[str, Event] = {}
        self._replay = state.Replay()
        self._state: State | None = None
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Raises DamagedError for an event that lacks what its type must say."""
        self._replay.take(event)
        if event.type == "cell.verified" and event.cell is not None:
            self._replay.shorten(event.cell)
        self._state = None
        if event.cell is not None:
            self._take_of_cell(event, event.cell)

    def _take_of_cell(self, event: Event, cell: str) -> None:
        if event.type in self.newest:
            self.newest[event.type].put(cell, event)
        if event.type == "cell.started":
            self.begun.share(cell, self.newest[event.type].packed(cell))
        elif cell_line.tells_begun(event):
            self.begun.put(cell, event)
        if event.type == "cell.started" and "release" in event.data:
            self.started_from[event.data["release"], event.data.get("slot", 0)] = cell
        elif event.type == "cell.synced":
            size_bytes = event.data.get("size_bytes", 0)
            self.largest_result_bytes = max(self.largest_result_bytes, size_bytes)
        elif event.type == "cell.verified":
            self.newest["cell.succeeded"].drop(cell)  # its warnings are in the manifest by now
        elif event.type == "box.warning":
            self._warned.add((event.data.get("what", ""), cell))
            if event.data.get("ends"):
                self._ended_early[cell] = event

    def state(self) -> State:
        if self._state is None:
            self._state = self._replay.state()
        return self._state

    def record(self, cell: str) -> CellRecord:
        return self._replay.record(cell)

    def was_warned(self, what: str, cell: str) -> bool:
        """Whether it was ever said of that cell, by any agent of this queue."""
        return (what, cell) in self._warned

    def ended_early(self, cell: str, attempt: int) -> Event | None:
        """The warning for which this attempt is ended by an agent of this queue."""
        event = self._ended_early.get(cell)
        return event if event and event.data.get("attempt") == attempt else None


class Reporter:
    def __init__(
        self,
        journal: Journal,
        deliverer: Deliverer | None,
        remembered: Remembered | None = None,
        secrets: BoxSecrets | None = None,
    ) -> None:
        """`remembered` has taken the journal's events; else they are read."""
        self.secrets = secrets or BoxSecrets()
        self._journal = journal
        self._deliverer = deliverer
        self._lock = threading.RLock()
        self._remembered = remembered or Remembered(
            read_journal(journal.path).events, is_copied=True
        )
        self._warned: set[str] = set()
        if deliverer:
            self._start(deliverer)

    def _start(self, deliverer: Deliverer) -> None:
        """Only now: opening the journal may have put a torn last line aside.

        A queue runs without its webhooks where their cursor is damaged; no event is lost by it.
        """
        try:
            deliverer.start()
        except DamagedError as error:
            self._deliverer = None
            text = _(
                "no webhooks are sent: {why}. Once the queue has ended, repair --put-back fixes "
                "it, and the next launch sends all",
                why=message_of(error).text,
            )
            self.warn("webhooks_off", text)

    @property
    def torn_file(self) -> Path | None:
        return self._journal.torn_file

    @property
    def journal_end(self) -> JournalEnd:
        with self._lock:
            return self._journal.end

    def say(self, type: str, **data: Any) -> None:
        """Write an event; when this returns it is durable."""
        with self._lock:
            # What is None is left out.
            told = {
                **self._without_secrets(event_words.beside(data)),
                NEEDS: needed_command(type, data),
            }
            self._remembered.take(self._journal.append(type, **told))
            if self._deliverer:
                # Under the lock: what is not yet on the disk must not be sent.
                self._deliverer.wake()

    def _without_secrets(self, data: Mapping[str, Any]) -> dict[str, Any]:
        known = self.secrets.known()
        return {k: v if k in _EXACT else known.left_out_of(v) for k, v in data.items()}

    def warn(self, what: str, text: str, cell: str | None = None) -> None:
        """Say once what a person should know. Without room for it now, the next call says it."""
        if text in self._warned:
            return
        try:
            self.say("box.warning", what=what, text=text, cell=cell)
        except OSError as error:
            if not is_full(error):
                raise
        else:
            self._warned.add(text)

    def warn_once(self, what: str, text: str, cell: str) -> None:
        """The same once for a cell, whatever the sentence, also if an earlier agent said it."""
        with self._lock:
            was_said = self._remembered.was_warned(what, cell)
        if not was_said:
            self.warn(what, text, cell)

    def ended_early(self, cell: str, attempt: int) -> Event | None:
        """The warning for which this attempt is ended by an agent of this queue."""
        with self._lock:
            return self._remembered.ended_early(cell, attempt)

    def state(self) -> State:
        with self._lock:
            return self._remembered.state()

    def record(self, cell: str) -> CellRecord:
        """What `state` has of one cell; it costs no walk over the others."""
        with self._lock:
            return self._remembered.record(cell)

    def last(self, type: str, cell: str) -> Event | None:
        """The newest event of a type, see KEPT, about a cell."""
        with self._lock:
            return self._remembered.newest[type].get(cell)

    def line_of(self, cell: str) -> CellLine:
        """A cell as it was started, whatever the queue says of it by now. Raises DamagedError."""
        started = self.last("cell.started", cell)
        if started is None:
            queue = self._journal.path.stem
            raise DamagedError(
                _("{queue}: {cell} ran, but no event says how it ended", queue=queue, cell=cell)
            )
        return cell_line.begun_line(started)

    def was_left(self, cell: str) -> bool:
        """Whether the last attempt saved and left when it was asked to: nothing was cut off."""
        before = self.record(cell).state
        return isinstance(before, state.Preempted) or (
            isinstance(before, state.Waiting) and before.failure == classify.PREEMPTED
        )

    def last_started_from(self, release: str, slot: int = 0) -> str | None:
        """The cell that was started last from a release in a slot, by any agent of this queue."""
        with self._lock:
            return self._remembered.started_from.get((release, slot))

    def begun(self, cell: str) -> Event | None:
        """How a cell was started last, here or on a box whose result was lent to this one."""
        with self._lock:
            return self._remembered.begun.get(cell)

    def newest(self, type: str) -> PackedEvents:
        """The newest event of a type, see KEPT, about each cell."""
        with self._lock:
            return self._remembered.newest[type].copy()

    def largest_result_bytes(self) -> int:
        with self._lock:
            return self._remembered.largest_result_bytes

    def webhooks(self) -> dict[str, Any]:
        """How the endpoints are doing, for the heartbeat; what one refuses is said once."""
        if self._deliverer is None:
            return {}
        for text in self._deliverer.refusals():
            # Said by the agent's loop, the journal's writer, and not by the endpoint's thread.
            self.warn("news_refused", text)
        return self._deliverer.status()

    def close(self, flush_s: float) -> None:
        """Give what is not yet delivered `flush_s` seconds; the rest stays in the journal."""
        if self._deliverer:
            self._deliverer.close(flush_s)


# --- Events by cell, kept as bytes for as long as a run: an Event of each cell takes twenty times
# as much. Each is spelled by what it has that the first one had not.

_LEVEL, _WINDOW, _MEMORY = 6, -12, 5


class Packing:
    """What is packed by one can be unpacked by it alone."""

    def __init__(self) -> None:
        self._like = b""

    def pack(self, event: Event) -> bytes:
        fields = [event.seq, event.id, event.at, event.type, event.data, event.extra]
        spelled = json.dumps(fields, separators=(",", ":")).encode()
        self._like = self._like or spelled
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=self._like)
        return packer.compress(spelled) + packer.flush()

    def unpack(self, packed: bytes) -> Event:
        unpacker = zlib.decompressobj(_WINDOW, zdict=self._like)
        return Event(*json.loads(unpacker.decompress(packed) + unpacker.flush()))


class PackedEvents(Mapping[str, Event]):
    def __init__(self, packing: Packing, packed: Mapping[str, bytes] | None = None) -> None:
        self._packing = packing
        self._packed = dict(packed or {})

    def put(self, cell: str, event: Event) -> None:
        self.share(cell, self._packing.pack(event))

    def share(self, cell: str, packed: bytes) -> None:
        """As `packed` of another one with the same packing gives it."""
        self._packed[sys.intern(cell)] = packed

    def drop(self, cell: str) -> None:
        self._packed.pop(cell, None)

    def packed(self, cell: str) -> bytes:
        return self._packed[cell]

    def copy(self) -> PackedEvents:
        return PackedEvents(self._packing, self._packed)

    def __getitem__(self, cell: str) -> Event:
        return self._packing.unpack(self._packed[cell])

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
