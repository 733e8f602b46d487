"""The live checkpoint of a cell, mirrored to the durable tier, so that a lost box costs minutes.

How often is Young and Daly's (shared/cadence.py), from the time a copy was measured to take. What
is mirrored is the newest complete match of the job's `resume` (shared/resume_match.py), under its
own name; one that changed while it was copied is dropped. A folder travels as one packed file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from boxcar.shared import cadence, out_pattern, resume_match, timestamp
from boxcar.shared.disk import atomic, checked_copy, packed_folder
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.message import counted
from boxcar.shared.seen_checkpoint import Seen

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
            wait_s = STILL_S if out_pattern.is_pattern(self._resume) else 0.0
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
                self._look(), resume_match.look(self._out, self._resume), time.time_ns()
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
        seen = resume_match.look(self._out, self._resume)
        return resume_match.down_to_whole(seen, time.time_ns())

    def _newest_complete(self) -> Seen | None:
        """By the look before and one now.

        A plain path may be replaced more often than anybody looks: there the second look that
        counts is the one after the copy.
        """
        before, self._first_look = self._first_look or self._look(), None
        now = resume_match.look(self._out, self._resume)
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
    meant, kind = ("folders", "file") if out_pattern.is_of_folders(resume) else ("files", "folder")
    if other is not None:
        what_to_do = "leave the / at its end out" if kind == "file" else "end it with /"
        yield (
            "resume_kind",
            f"{cell}: resume: {resume} is of {meant}, and matches the {kind} {other} too, which is "
            f"not taken for a checkpoint; if {kind}s are meant, {what_to_do}",
        )
    if without_s > NEVER_S:
        minutes = counted(int(NEVER_S / 60), "minute")
        yield (
            "no_checkpoint",
            f"{cell} has run for {minutes} and there is no {resume} in its {{out}}: nothing is "
            "mirrored, and after a kill it begins anew. Does the script save there?",
        )
