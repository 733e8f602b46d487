"""An attempt has ended: its evidence is gathered here, and judged in classify.py."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.artifacts import resume_match
from boxcar.shared.cell import terms, visible_gpus
from boxcar.shared.disk import checked_copy
from boxcar.shared.errors import BoxcarError, some
from boxcar.shared.files import progress
from boxcar.shared.files.attempt import Done
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.triage import own_rows
from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.log_lines import Tail
from onbox.judging import classify, gpu_numbers, log_tail
from onbox.judging.verdict import Action, Verdict
from onbox.machine import end_evidence
from onbox.machine.place import Place
from onbox.result import left_artifacts, published


@dataclass(frozen=True)
class Looked:
    """What an attempt did to its release: `changed` files of it, `warnings` of what it added.

    `strays` are declared files that it wrote beside the code: declared path -> where it lay there.
    """

    changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    strays: Mapping[str, str] = field(default_factory=dict)


def of_attempt(
    ran_at: Place,
    cell: str,
    done: Done | None,
    wrapper_rc: int | None,
    looked: Looked,
    *,
    gpus: Sequence[str] = (),
) -> Verdict:
    """`ran_at` is the place of the release that it ran from; `done` None: it left no record; `gpus`
    are those that it had for itself, none: all of the box.

    Raises DamagedError, OSError.
    """
    tail = log_tail.read(ran_at.scratch, cell)
    if done is None and published.stands(ran_at.durable, cell):
        return Verdict(Action.SUCCEED)
    lacking_room = checked_copy.lack_of_room(ran_at.scratch.root)
    if done is None:
        return classify.without_record(wrapper_rc, tail.text, lacking_room=lacking_room)
    if looked.changed:
        return classify.of_changed_code(looked.changed)
    found, its = left_artifacts.look(ran_at, cell), terms.terms_of_cell(ran_at.plan, cell)
    seen = _seen(ran_at, tail, gpus) if done.rc else classify.NOTHING_SEEN
    verdict = classify.classify(
        done,
        tail.text,
        found.missing,
        found.problem,
        lacking_room=lacking_room,
        launcher=its.launcher,
        strays=looked.strays,
        workdir=ran_at.plan.workdir,
        has_saved=has_saved(ran_at.scratch.out(cell), its.resume, done),
        seen=seen,
    )
    if done.rc and not seen.gpu_problems:  # which name the box's cards already
        shown = gpus or visible_gpus.of_env({**os.environ, **ran_at.plan.env, **its.env}) or ()
        verdict = replace(verdict, reason=gpu_numbers.with_cards_of_box(verdict.reason, shown))
    is_lacking = verdict.failure == classify.NO_ART and not looked.strays
    return _with_what_is_there(verdict, ran_at.scratch.out(cell)) if is_lacking else verdict


def _with_what_is_there(verdict: Verdict, out: Path) -> Verdict:
    """Mostly a declared artifact has another name or folder."""
    names = sorted(str(path.relative_to(out)) for path in _files(out) if path.name != progress.FILE)
    if not names:
        return verdict
    about = {"first": verdict.reason, "files": some(names, _MOST_NAMED)}
    return replace(verdict, reason=_("{first}. In {{out}} there is: {files}", **about))


def _files(out: Path) -> Iterator[Path]:
    """The first that are met."""
    found = (path for path in out.rglob("*") if path.is_file() and not path.is_symlink())
    return itertools.islice(found, _MOST_LOOKED_AT)


def _seen(ran_at: Place, tail: Tail, gpus: Sequence[str]) -> Evidence:
    own = own_rows.match(ran_at.plan.signatures, tail.text, tail.begins_at_line)
    return replace(end_evidence.beside(tail, gpus), own=own)


_MOST_NAMED, _MOST_LOOKED_AT = 5, 1000


# --- Whether an attempt has left a checkpoint: one that is whole, and newer than its begin.

# Of a shell: what is above it is a signal.
_OF_SIGNALS = 128


def has_saved(out: Path, resume: str | None, done: Done) -> bool:
    """`resume` is the job's. False too where it names none, or nobody can look."""
    if resume is None:
        return False
    began_ns = int(timestamp.parse_utc(done.started_at).timestamp() * 1e9)
    # Who left by itself had time to end what it wrote, so that no folder needs to be a minute old.
    at_ns = sys.maxsize if 0 <= done.rc <= _OF_SIGNALS else time.time_ns()
    try:
        found = resume_match.find_checkpoints(out, resume)
        return any(seen.mtime_ns >= began_ns and seen.is_whole(at_ns) for seen in found)
    except (BoxcarError, OSError):
        return False
