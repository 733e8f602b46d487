"""The live checkpoint of a cell, mirrored to the durable tier, so that a lost box costs minutes.

How often is Young and Daly's (shared/artifacts/cadence.py), from the time a copy was measured to
take. What is mirrored is the newest complete match of the job's `resume`
(shared/artifacts/resume_match.py), under its own name; one that changed while it was copied is
dropped. A folder travels as one packed file.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path, PurePosixPath

from boxcar.shared import timestamp
from boxcar.shared.artifacts import cadence, resume_match
from boxcar.shared.artifacts.resume_match import is_of_folders, is_pattern
from boxcar.shared.artifacts.seen_checkpoint import Seen
from boxcar.shared.disk import atomic, checked_copy, packed_folder
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.sentence import Sentence, _, mark
from onbox.machine import io_class

SHORTEST_S, LONGEST_S = 60.0, 3600.0
# Between two looks at what a pattern matches: who writes a file for minutes writes some of it.
STILL_S = 2.0
# After this time a cell should have saved something.
NEVER_S = 600.0

# Says what a person should know of the cell: a word for the kind of it, and a sentence.
Warn = Callable[[str, str], None]


def nobody(what: str, text: str) -> None:
    pass


def cadence_s(copy_s: float, mtbf_s: float) -> float:
    """Seconds from one mirrored checkpoint to the next."""
    return min(LONGEST_S, max(SHORTEST_S, cadence.window_s(copy_s, mtbf_s)))


class Mirror:
    """Mirrors one cell's checkpoint while one attempt runs."""

    def __init__(
        self,
        cell: str,
        attempt: int,
        out: Path,
        resume: str,
        folder: Path,
        *,
        saying: str | None = None,
        mtbf_s: float = cadence.PRIOR_S,
        warn: Warn = nobody,
    ) -> None:
        """`resume` is a path or a pattern below `out`; a match may be a link to another there.

        `saying`: what the cell was asked for. `mtbf_s`: the mean time between interruptions of this
        box.
        """
        self._cell, self._attempt = cell, attempt
        self._out, self._resume, self._folder = out, resume, folder
        self._saying, self._mtbf_s, self._warn = saying, mtbf_s, warn
        self._since = time.monotonic()
        self._next_at = self._since + SHORTEST_S
        self._first_look: list[Seen] | None = None
        self._copying: Seen | None = None
        self._mirrored: Seen | None = None
        self._was_met = False
        self._told: set[str] = set()

    @property
    def due_in_s(self) -> float:
        return max(0.0, self._next_at - time.monotonic())

    def tick(self, on_chunk: Callable[[int], None]) -> None:
        """Mirror the checkpoint if it is due and new. Raises OSError and NoRoomError."""
        if time.monotonic() < self._next_at:
            return
        if self._first_look is None:
            self._next_at = time.monotonic() + SHORTEST_S  # should the look fail
            self._first_look = self._look()
            self._tell_doubts()
            wait_s = STILL_S if is_pattern(self._resume) else 0.0
            self._next_at = time.monotonic() + wait_s
        if time.monotonic() >= self._next_at:
            self._mirror(on_chunk)

    def flush(self, on_chunk: Callable[[int], None]) -> None:
        """Mirror the checkpoint if it is new: the box may be going away."""
        self._first_look = None
        self._mirror(on_chunk)

    def is_behind(self) -> bool:
        """Whether a copy is under way, and a newer checkpoint is complete. For another thread."""
        copying = self._copying
        if copying is None:
            return False
        try:
            now = resume_match.newest_complete(
                self._look(), resume_match.find_checkpoints(self._out, self._resume), time.time_ns()
            )
        except (BoxcarError, OSError):
            return False  # what is being copied is what there is
        return now is not None and now != copying

    def _mirror(self, on_chunk: Callable[[int], None]) -> None:
        found = self._newest_complete()
        if found is None or found == self._mirrored:
            self._next_at = time.monotonic() + SHORTEST_S
            return
        started, self._copying = time.monotonic(), found
        try:
            if self._copy(found, on_chunk):
                self._mirrored = found
        finally:
            self._copying = None
            self._next_at = time.monotonic() + cadence_s(time.monotonic() - started, self._mtbf_s)

    def _look(self) -> list[Seen]:
        seen = resume_match.find_checkpoints(self._out, self._resume)
        return resume_match.down_to_whole(seen, time.time_ns())

    def _newest_complete(self) -> Seen | None:
        """By the look before and one now.

        A plain path may be replaced more often than anybody looks: there the second look that
        counts is the one after the copy.
        """
        before, self._first_look = self._first_look or self._look(), None
        now = resume_match.find_checkpoints(self._out, self._resume)
        return resume_match.newest_complete(before, now, time.time_ns())

    def _copy(self, found: Seen, on_chunk: Callable[[int], None]) -> bool:
        # The cell's own folder may be new; the one of all cells is not.
        atomic.make_folder_on_tier(self._folder, self._folder.parents[1])
        atomic.remove_unfinished(self._folder)
        checked_copy.check_room(self._folder, [file.size_bytes for file in found.files])
        name = f"{self._attempt}-{found.mtime_ns}-{PurePosixPath(found.name).name}"
        started = time.monotonic()
        file = self._copied(found, self._folder / name, on_chunk)
        on_chunk(0)  # whoever gives the copy up gives up what follows from it
        if resume_match.look_at(self._out, found.name) != found:
            (self._folder / name).unlink()
            return False
        pointer = Resume(
            *(self._cell, self._attempt, timestamp.utc_now(), found.name, file, found.is_folder),
            saying=self._saying,
            seconds=round(time.monotonic() - started, 3),
        )
        atomic.write_whole(self._folder / resume_pointer.FILE, codec.to_document(pointer))
        for other in self._folder.iterdir():
            if other.name not in (name, resume_pointer.FILE):
                other.unlink()
        return True

    def _copied(self, found: Seen, target: Path, on_chunk: Callable[[int], None]) -> FileRecord:
        if not found.is_folder:
            return checked_copy.checked_copy(found.path, target, target.name, on_chunk)
        names = [file.name for file in found.files]
        return packed_folder.pack(found.path, names, target, on_chunk)

    def _tell_doubts(self) -> None:
        self._was_met = self._was_met or bool(self._first_look)
        other = resume_match.of_other_kind(self._out, self._resume)
        ran_s = 0.0 if self._was_met else time.monotonic() - self._since
        for what, text in doubts(self._cell, self._resume, ran_s, other):
            if what not in self._told:
                self._told.add(what)
                self._warn(what, text)


def doubts(
    cell: str, resume: str, without_s: float, other: str | None
) -> Iterator[tuple[str, str]]:
    """What a person should know of a checkpoint that is looked for in vain, or in two ways.

    `without_s`: how long the cell has run without one. `other`: what its pattern matches too, and
    is a folder where files are meant, or a file.
    """
    if other is not None:
        template = mark(
            "{cell}: resume: {resume} means files, so the folder {other} that it matches is not "
            "taken for a checkpoint. If you mean folders, end it with /"
        )
        if is_of_folders(resume):
            template = mark(
                "{cell}: resume: {resume} means folders, so the file {other} that it matches is "
                "not taken for a checkpoint. If you mean files, remove the / at its end"
            )
        yield "resume_kind", Sentence(template, cell=cell, resume=resume, other=other)
    if without_s > NEVER_S:
        text = _(
            "{cell} has run for {n} {n:minute|minutes} and there is no {resume} in its {{out}}: "
            "nothing is mirrored, and after a kill it starts over. Does the script save there?",
            cell=cell,
            n=int(NEVER_S / 60),
            resume=resume,
        )
        yield "no_checkpoint", text


# --- The mirror of a cell's live checkpoint, in a thread of its own: no end of a cell waits for
# it. A copy gives way to all who wait for the disk, as the record of a cell's end and the next
# claim do. Once the cell has succeeded the copy under way is given up; the result is what counts
# then. Whoever removes what was mirrored waits until nothing is written there any more. At a stop
# the newest one is what must arrive, and before the box is gone.

# Longer than that nobody waits for a checkpoint that may be due.
LOOK_EVERY_S = 1.0
_SHORTEST_S = 0.05
# A disk that is never idle must not keep a checkpoint from the tier.
GIVES_WAY_S = 60.0


class GivenUp(Exception):
    """The copy is not needed any more."""


class Mirroring:
    def __init__(
        self,
        mirror: Mirror,
        fail: Callable[[Exception], None],
        bytes_per_s: float | None = None,
    ) -> None:
        """`fail` hears of a copy that could not be made: that costs the mirror, not the cell.

        `bytes_per_s`: what a copy beside the training may take of the tier, read back included.
        """
        self._mirror, self._fail = mirror, fail
        self._bytes_per_s = bytes_per_s
        self._is_over = False
        self._is_given_up = False
        self._is_behind = False
        self.was_late = False  # for good
        # From when on the newest is wanted at once; whether it was tried.
        self._is_hurried, self._was_tried = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    def flush(self, until: float = math.inf) -> Generator[None, None, bool]:
        """Mirror the newest checkpoint; False where that was not through at `until`, in the seconds
        of time.monotonic(). It is given up then, and the one before stays. A copy under way goes
        on, unless a newer one is complete.
        """
        self._was_tried.clear()
        self._is_behind = self._mirror.is_behind()
        self._is_hurried.set()
        while self._thread.is_alive() and not self._was_tried.is_set():
            yield
            if time.monotonic() >= until:
                self.was_late = True
                self.give_up()
                return False
        return True

    def finish(self) -> Generator[None, None, None]:
        """The last copy is that under way, which is waited for."""
        self._end()
        while self._thread.is_alive():
            yield

    def give_up(self) -> None:
        """Without waiting: the copy under way ends at its next block."""
        self._is_given_up = True
        self._end()

    def wait(self) -> None:
        """Until nothing is written any more; after one of the two above."""
        self._thread.join()

    def _end(self) -> None:
        self._is_over = True
        self._is_hurried.set()

    def _run(self) -> None:
        while not self._is_over:
            pause_s = min(LOOK_EVERY_S, max(_SHORTEST_S, self._mirror.due_in_s))
            is_hurried = self._is_hurried.wait(pause_s)
            if self._is_over:
                return
            if is_hurried:
                self._is_behind = False
                self._do(lambda: self._mirror.flush(self._go_on))
                self._is_hurried.clear()
                self._was_tried.set()
            else:
                self._do(self._tick)

    def _tick(self) -> None:
        began, done_bytes = time.monotonic(), 0

        def on_chunk(size_bytes: int) -> None:
            nonlocal done_bytes
            done_bytes += size_bytes
            ran_s = time.monotonic() - began
            if self._is_hurried.is_set() or ran_s > GIVES_WAY_S:
                io_class.be_usual()
            self._is_hurried.wait(ahead_s(done_bytes, ran_s, self._bytes_per_s))
            self._go_on(size_bytes)

        io_class.give_way()
        try:
            self._mirror.tick(on_chunk)
        finally:
            io_class.be_usual()

    def _go_on(self, size_bytes: int) -> None:
        if self._is_given_up or self._is_behind:
            raise GivenUp

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
        except GivenUp:
            return
        except (BoxcarError, OSError) as error:
            if not self._is_given_up:
                self._fail(error)


def ahead_s(done_bytes: int, ran_s: float, bytes_per_s: float | None) -> float:
    """For how long a copy that takes no more than so much a second has to rest now."""
    return 0.0 if bytes_per_s is None else max(0.0, done_bytes / bytes_per_s - ran_s)
