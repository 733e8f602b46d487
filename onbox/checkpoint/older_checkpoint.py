"""An attempt that failed at once on its checkpoint: the next older one is tried, once.

That a script failed at once proves nothing against what it was to load. So the checkpoint is only
put aside, once the journal says so, and comes back where the older one does not help either.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.shared import paths, timestamp
from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.resume_match import parts
from boxcar.shared.artifacts.seen_checkpoint import Seen
from boxcar.shared.cell import terms
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.files import progress
from boxcar.shared.files.attempt import Done
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.triage.evidence import Course
from onbox.judging.verdict import Action, Verdict
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter

RESUME = "RESUME"
# Imports, a large model and its checkpoint take minutes; who trains that long has loaded it.
AT_ONCE_S = 120.0
_WAITS_S = (1.0,)
# The script's own end, with its own message: not the box's, and not one that it asked to be final.
_OWN_END = re.compile(r"EXIT-?\d+|W-ONLY|C2|C15|C17|C18|NOFILE")


@dataclass(frozen=True)
class Failed:
    """An attempt that failed, and what it has left. `began_ns` as files have it."""

    verdict: Verdict
    seconds: float
    began_ns: int
    was_told_to_stop: bool
    last_report_ns: int
    checkpoints: Sequence[Seen]  # those that are whole, newest first

    @property
    def is_at_once(self) -> bool:
        """Whether the script ended by itself, before it had reported or saved anything."""
        written = [self.last_report_ns, *(one.mtime_ns for one in self.checkpoints)]
        verdict = self.verdict
        return (
            verdict.action is Action.FAIL
            and not (verdict.is_final or verdict.is_kept or self.was_told_to_stop)
            and bool(_OWN_END.fullmatch(verdict.failure))
            and self.seconds < AT_ONCE_S
            and max(written) < self.began_ns
        )


def to_try(failed: Failed) -> Seen | None:
    """The newest one that is another than the one it began with; None where none may help."""
    if not (failed.is_at_once and failed.checkpoints):
        return None
    newest = failed.checkpoints[0]
    return next((one for one in failed.checkpoints if one.path != newest.path), None)


def instead(
    place: Place, cell: str, done: Done | None, verdict: Verdict, reporter: Reporter
) -> Verdict:
    """The verdict on the last attempt, once it is seen whether an older checkpoint may help."""
    resume = terms.terms_of_cell(place.plan, cell).resume
    if done is None or resume is None:
        return verdict
    try:
        failed = _look(place.scratch.out(cell), resume, done, verdict)
        if is_from_older(reporter, cell, done.attempt):
            return _as_before(place.scratch, cell, resume, failed, done.attempt)
    except (BoxcarError, OSError) as error:
        text = _(
            "{cell}: an older checkpoint could not be tried: {why}", cell=cell, why=words_of(error)
        )
        reporter.warn("older_checkpoint", text, cell)
        return verdict
    if reporter.record(cell).retries.get(RESUME):
        return verdict
    found = retry(cell, failed, place.scratch.unloaded(cell))
    if found is None:
        return verdict
    reporter.warn("older_checkpoint", found.reason, cell)
    return found


def put_aside(scratch: ScratchPaths, cell: str, number: int, reporter: Reporter) -> None:
    """Before an attempt: what the one before it could not load, as the journal says. May be done
    again. Raises OSError.
    """
    if is_from_older(reporter, cell, number):
        event = reporter.last("cell.retried", cell)
        names = event.data.get("aside", ()) if event else ()
        move_aside(scratch, cell, number - 1, names)


def is_from_older(reporter: Reporter, cell: str, number: int) -> bool:
    """Whether this attempt is the one in which an older checkpoint is tried."""
    last = reporter.last("cell.retried", cell)
    return last is not None and (last.data["failure"], last.data["attempt"]) == (RESUME, number - 1)


def retry(cell: str, failed: Failed, aside: Path) -> Verdict | None:
    """`aside` is where the one that could not be loaded will lie."""
    older = to_try(failed)
    if older is None:
        return None
    newest = failed.checkpoints[0]
    # A link to a checkpoint, and the checkpoint, are one.
    names = tuple(one.name for one in failed.checkpoints if one.path == newest.path)
    text = _(
        "{cell} failed {seconds:.0f} s after it began from {newest}: {reason}. It is tried once "
        "from {older}; {newest} is in {aside} meanwhile",
        cell=cell,
        seconds=failed.seconds,
        newest=newest.name,
        reason=failed.verdict.reason,
        older=older.name,
        aside=aside,
    )
    return Verdict(Action.RETRY, RESUME, text, _WAITS_S, aside=names, course=Course.RESUME_SAME)


def _look(out: Path, resume: str, done: Done, verdict: Verdict) -> Failed:
    report = resume_match.look_at(out, progress.FILE)
    found = resume_match.find_checkpoints(out, resume)
    return Failed(
        verdict=verdict,
        seconds=done.seconds,
        began_ns=int(timestamp.parse_utc(done.started_at).timestamp() * 1e9),
        was_told_to_stop=done.was_told_to_stop,
        last_report_ns=report.mtime_ns if report else 0,
        checkpoints=[seen for seen in found if seen.is_whole(time.time_ns())],
    )


def _as_before(
    scratch: ScratchPaths, cell: str, resume: str, failed: Failed, number: int
) -> Verdict:
    """Where the older one did not help, it was not the checkpoint: that comes back."""
    if not failed.is_at_once:
        return failed.verdict
    back = move_back(scratch, cell, number - 1, len(parts(resume)))
    if not back:
        return failed.verdict
    text = _(
        "{reason} (from an older checkpoint too; {checkpoint} is back in its place)",
        reason=failed.verdict.reason,
        checkpoint=back[0],
    )
    return replace(failed.verdict, reason=text)


# --- A checkpoint that a cell could perhaps not load: put aside while the next older one is tried.
# It stays beside {out}, by the attempt that failed with it, and is put back where the older one
# fails in the same way: then it was not the checkpoint. The cell's verification removes it.


def move_aside(scratch: ScratchPaths, cell: str, attempt: int, names: Iterable[str]) -> None:
    """Move what has these names in {out}, as far as it is there. Raises OSError."""
    for name in names:
        source, target = (
            paths.inside(scratch.out(cell), name),
            _folder(scratch, cell, attempt) / name,
        )
        if _is_there(source):
            atomic.make_folder(target.parent)
            source.rename(target)


def move_back(scratch: ScratchPaths, cell: str, attempt: int, depth: int) -> list[str]:
    """Move it back; the names, each of `depth` parts. Raises OSError.

    A name that the cell has used since stays the cell's.
    """
    folder, out = _folder(scratch, cell, attempt), scratch.out(cell)
    found = sorted(path.relative_to(folder) for path in folder.glob("/".join(["*"] * depth)))
    back = [name for name in found if not _is_there(out / name)]
    for name in back:
        atomic.make_folder((out / name).parent)
        (folder / name).rename(out / name)
    return [name.as_posix() for name in back]


def _folder(scratch: ScratchPaths, cell: str, attempt: int) -> Path:
    return scratch.unloaded(cell) / str(attempt)


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()
