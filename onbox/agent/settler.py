"""Settling results beside the next cell: one thread that publishes, verifies and prunes.

So the GPU does not wait for a copy. A disk that is full or away is given some time; what cannot be
settled then stops the queue, and the result stays on scratch for the next agent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from boxcar.shared import event_words, state, timestamp
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk.checked_copy import OnChunk
from boxcar.shared.errors import BoxcarError, DamagedError, message_of, words_of
from boxcar.shared.event_words import SENTENCES
from boxcar.shared.files import attempt, manifest
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.heartbeat import Copying
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import Manifest, TrainedOn
from boxcar.shared.files.receipt import LAPTOP, Accepted, accepted_result
from boxcar.shared.metrics import measure, result_files
from boxcar.shared.sentence import _
from onbox.judging import classify, ended_well
from onbox.machine.place import Place
from onbox.machine.room_wait import RoomWait, is_no_room
from onbox.queue.reporter import Reporter
from onbox.result import collect, left_artifacts, published, settle
from onbox.result.asked import Asked

WAITS_S = (2.0, 10.0, 60.0)


class Settler:
    def __init__(
        self,
        place: Place,
        reporter: Reporter,
        place_of: Callable[[str], Place],
        asked_of: Callable[[CellLine], Asked],
        *,
        wait_for_mirror: Callable[[str], None] = lambda cell: None,
        trained_on: Callable[[Event | None], TrainedOn | None] = lambda started: None,
    ) -> None:
        """`place` is the agent's. By its own release a cell is judged, `place_of`, and was it asked
        for, `asked_of`. `wait_for_mirror`: until nobody writes to a cell's mirror. `trained_on`:
        what an attempt had, of how it was started.
        """
        self._trained_on = trained_on
        self._wait_for_mirror = wait_for_mirror
        self._place = place
        self._place_of = place_of
        self._asked_of = asked_of
        self._reporter = reporter
        self.copy = CopySoFar()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="settle")
        self._pending: dict[Future[None], str] = {}  # with the cell's name
        self._hurry = threading.Event()
        self._room = RoomWait(
            place.plan.full_disk_s, self._hurry.wait, self._hurry.is_set, self._warn_of_no_room
        )

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    def wait(self, timeout_s: float) -> None:
        """Until one more result is settled, or for that time."""
        futures.wait(self._pending, timeout_s, futures.FIRST_COMPLETED)

    def hand_over(self, cell: CellLine, number: int) -> None:
        """Settle this attempt's result as soon as those before it are settled."""
        self._pending[self._executor.submit(self._settle, cell, number)] = cell.name

    def is_at(self, cell: str) -> bool:
        """Whether the cell's result was handed over and is not settled yet, as far as was asked."""
        return cell in self._pending.values()

    def failures(self) -> list[BaseException]:
        """What could not be settled since the last call."""
        ended = [future for future in self._pending if future.done()]
        for future in ended:
            del self._pending[future]
        return [error for future in ended if (error := future.exception())]

    def hurry(self) -> None:
        """From now on, do not wait for a disk to come back."""
        self._hurry.set()

    def close(self) -> None:
        """Finish what was handed over, without waiting for a disk to come back."""
        self.hurry()
        self._executor.shutdown(wait=True)

    def _settle(self, cell: CellLine, number: int) -> None:
        for wait_s in WAITS_S:
            try:
                return self._room.through(lambda: self._settle_or_say(cell, number))
            except (BoxcarError, OSError) as error:
                if is_no_room(error):
                    raise  # it has been waited for
                text = _(
                    "the result of {cell} could not be published: {why}; trying again",
                    cell=cell.name,
                    why=message_of(error).text,
                )
                self._reporter.warn("sync_failed", text, cell.name)
                self._hurry.wait(wait_s)
        try:
            self._settle_or_say(cell, number)
        except settle.UncheckedError as error:
            # The next cell's result may be one that can be checked.
            self._say_kept(cell, number, classify.UNCHECKED, message_of(error).text)

    def _settle_or_say(self, cell: CellLine, number: int) -> None:
        try:
            self._settle_once(cell, number)
        except settle.GoneError as error:
            if self._is_kept(cell, number):
                self._say_kept(cell, number, classify.UNFIT, message_of(error).text)
            else:
                self._say_gone(cell, number, message_of(error).text)
        except settle.UnfitError as error:
            self._say_kept(cell, number, classify.UNFIT, message_of(error).text)
        except settle.MovedError as error:
            self._reporter.say("cell.skipped", cell=cell.name, reason=message_of(error).text)

    def _warn_of_no_room(self, text: str) -> None:
        self._reporter.warn("disk_full", text)

    def _settle_once(self, cell: CellLine, number: int) -> None:
        self._wait_for_mirror(cell.name)  # a copy that was given up: the result may need its room
        try:
            made = self._publish(cell, number)
        finally:
            self.copy.end()
        about = {
            "cell": cell.name,
            "attempt": made.attempt,
            "manifest_sha256": manifest.sha256(self._place.durable.manifest(cell.name)),
        }
        if not isinstance(self._reporter.record(cell.name).state, state.Synced):
            size_bytes, files = made.size_bytes, len(made.all_files)
            self._reporter.say("cell.synced", **about, size_bytes=size_bytes, files=files)
        if found := accepted_result(self._place.durable, cell.name):
            self.take_accepted(cell.name, found, {})
            return
        known = self._reporter.secrets.known()
        receipt = settle.verify(self._place_of(cell.name), made, known)
        if receipt.is_good:
            self._reporter.say(
                "cell.verified",
                **about,
                metrics=result_files.of_result(receipt.metrics, receipt.findings),
                metric_notes=measure.notes(receipt.metrics) or None,
                bytes_only=settle.bytes_only(receipt) or None,
                trusted=settle.trusted(receipt) or None,
                doubt=made.doubt,
            )
            self.prune(cell.name)
        else:
            self._say_bad(cell, made, settle.problems(receipt))

    def take_accepted(self, cell: str, found: Accepted, ran_as: Mapping[str, Any]) -> None:
        """Say that a result is verified which the laptop has proven; this box could not. `ran_as`:
        how the cell was started, where no event of this queue says it.
        """
        made = manifest.read_manifest(self._place.durable.manifest(cell))
        receipt = published.receipt_of(self._place.durable, cell)
        self._reporter.say(
            "cell.verified",
            cell=cell,
            attempt=made.attempt,
            manifest_sha256=found.manifest_sha256,
            metrics=result_files.of_result(receipt.metrics, receipt.findings) if receipt else {},
            metric_notes=(measure.notes(receipt.metrics) or None) if receipt else None,
            bytes_only=(settle.bytes_only(receipt) or None) if receipt else None,
            by=LAPTOP,
            accepted_at=found.at,
            unpickled=list(found.unpickled),
            doubt=made.doubt,
            **ran_as,
        )
        self.prune(cell)

    def prune(self, cell: str) -> None:
        """Remove what a verified cell no longer needs; what cannot be removed is only said."""
        self._wait_for_mirror(cell)
        try:
            settle.prune(self._place_of(cell), cell)
        except (DamagedError, OSError) as error:
            text = _(
                "{cell} could not be removed from scratch: {why}", cell=cell, why=words_of(error)
            )
            self._reporter.warn("prune_failed", text, cell)

    def _publish(self, cell: CellLine, number: int) -> Manifest:
        place, name = self._place_of(cell.name), cell.name
        done = attempt.read_done(place.scratch.done(name, number))
        if done is not None:
            self._warn_of_what_is_left_out(name)
            made = settle.publish(
                place,
                cell,
                done,
                self._warnings(name),
                self._asked_of(cell),
                doubt=self._doubt(cell, done),
                trained_on=self._trained_on(self._reporter.last("cell.started", name)),
                secrets=self._reporter.secrets.values(),
                begin_copy=self.copy.begin,
            )
            self._warn_of_what_is_not_carried(made)
        elif published.stands(place.durable, name):
            made = manifest.read_manifest(place.durable.manifest(name))
        else:
            text = _("the record of attempt {n} at {cell} is not on scratch", n=number, cell=name)
            raise settle.GoneError(text)
        if done is not None and made.attempt != number:
            text = _(
                "{cell}: attempt {attempt} is published; attempt {other} is kept on scratch",
                cell=name,
                attempt=made.attempt,
                other=number,
            )
            self._reporter.warn("second_result", text, name)
        return made

    def _warnings(self, cell: str) -> tuple[str, ...]:
        """What the attempt was warned of when it ended."""
        succeeded = self._reporter.last("cell.succeeded", cell)
        data = (
            event_words.hear_in(succeeded.data, succeeded.data.get(SENTENCES)) if succeeded else {}
        )
        return tuple(data.get("warnings", ()))

    def _doubt(self, cell: CellLine, done: Done) -> str | None:
        """As it was said; what a person has put right since was never said to have ended well."""
        succeeded = self._reporter.last("cell.succeeded", cell.name)
        if succeeded and succeeded.data.get("attempt") == done.attempt:
            return event_words.hear_in(  # type: ignore[no-any-return]
                succeeded.data.get("doubt"), succeeded.data.get(SENTENCES)
            )
        started = self._reporter.last("cell.started", cell.name)
        return ended_well.doubt_of(self._place_of(cell.name), cell, done, started) or None

    def _warn_of_what_is_left_out(self, cell: str) -> None:
        for sentence in left_artifacts.look(self._place_of(cell), cell).left_out:
            self._reporter.warn("left_out", _("{cell}: {reason}", cell=cell, reason=sentence), cell)

    def _warn_of_what_is_not_carried(self, made: Manifest) -> None:
        for sentence in filter(collect.is_loss, made.carried.left_out):
            self._reporter.warn(
                "not_carried", _("{cell}: {reason}", cell=made.cell, reason=sentence), made.cell
            )

    def _is_kept(self, cell: CellLine, number: int) -> bool:
        """Whether somebody is about to put its result right: half of that may be done."""
        now = self._reporter.record(cell.name).state
        record = self._place.scratch.done(cell.name, number)
        return isinstance(now, state.Failed) and now.is_kept and record.exists()

    def _say_kept(self, cell: CellLine, number: int, failure: str, reason: str) -> None:
        self._reporter.say(
            "cell.failed",
            cell=cell.name,
            attempt=number,
            failure=failure,
            reason=reason,
            release=self._place_of(cell.name).release.name,
            seconds=0.0,
            is_kept=True,
        )

    def _say_gone(self, cell: CellLine, number: int, reason: str) -> None:
        """The box's scratch was lost before the result was published: the cell is run again."""
        self._reporter.say(
            "cell.retried",
            cell=cell.name,
            attempt=number,
            failure="LOST",
            reason=reason,
            wait_s=0,
            seconds=0.0,
        )

    def _say_bad(self, cell: CellLine, made: Manifest, problems: str) -> None:
        self._reporter.say(
            "cell.failed",
            cell=cell.name,
            attempt=made.attempt,
            failure="BAD-ART",
            reason=_("its artifacts did not pass the check: {problems}", problems=problems),
            release=made.release,
            seconds=0.0,
        )


# --- How far the copy of a result is: told by the thread that settles, read by the agent's loop.


class CopySoFar:
    def __init__(self) -> None:
        self.now: Copying | None = None

    def begin(self, cell: str, size_bytes: int) -> OnChunk:
        """A result of so many bytes is copied from now on; what is to be told of each part of it,
        once when it is written and once when it is read back.
        """
        since, total_bytes, done_bytes = timestamp.utc_now(), 2 * size_bytes, 0

        def on_chunk(part_bytes: int) -> None:
            nonlocal done_bytes
            # A log may have grown meanwhile.
            done_bytes = min(total_bytes, done_bytes + part_bytes)
            self.now = Copying(cell, since, done_bytes, total_bytes)

        on_chunk(0)
        return on_chunk

    def end(self) -> None:
        self.now = None
