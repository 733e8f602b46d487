"""The end of a run on this box: nothing is at work any more, and no secret stays behind.

Where the box itself is to end, nothing of another run may be at work there, either. Some boxes can
call their provider to that end (`machine/end_itself.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.disk.regular_file import read_plain
from boxcar.shared.errors import InputError
from boxcar.shared.files.own_end import OwnEnd, read_own_end
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.box_asks import AtWork, DeadlineKept, EndsItself, KeepDeadline
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import credentials_in, others
from onbox.machine import deadline_mark, end_itself
from onbox.machine.end_itself import OWN, Own

# Whoever only looks whether a lock is held has it for an instant.
PATIENCE_S = 0.5
# A call to the provider that has said nothing for so long has died.
_DEAD_AFTER_S = 90.0


def answer(
    question: box_asks.End | box_asks.EndItself | KeepDeadline, run: RunOnBox
) -> box_asks.Ended | EndsItself | DeadlineKept:
    """See `_end`, `_end_itself` and `machine/deadline_mark.py`."""
    if isinstance(question, KeepDeadline):
        problem = deadline_mark.lay(
            run.scratch, question.provider, question.quiet_s, question.most_s
        )
        return DeadlineKept(problem)
    if isinstance(question, box_asks.EndItself):
        return _end_itself(question, run)
    return _end(question, run)


def _end(question: box_asks.End, run: RunOnBox) -> box_asks.Ended:
    """Remove the file `credentials` and what `onbox resume` would start, if nothing is at work.

    Asked of `queues`, of every queue that was started here, and of every attempt; of other runs,
    but those of `beside`. What is at work is named in `alive`, and then nothing was removed. The
    locks are held meanwhile, so nothing starts. Harmless to repeat. Raises InputError for a
    credentials file that is not ours.
    """
    tier, scratch, secrets = run.tier, run.scratch, paths.on_box(question.credentials)
    if question.beside is not None and (strange := _others(run, question.beside)):
        return box_asks.Ended(strange)
    with contextlib.ExitStack() as held:
        locks = [
            *others.locks_of_agents(tier, scratch, question.queues),
            *others.locks_of_attempts(scratch),
        ]
        alive = [who for path, who in locks if not _try_take(path, held)]
        if alive:
            return box_asks.Ended(tuple(dict.fromkeys(alive)))
        _refuse_other_file(secrets)
        for queue in scratch.started():
            scratch.start(queue).unlink(missing_ok=True)
        _remove(secrets)
    return box_asks.Ended(())


def _end_itself(question: box_asks.EndItself, run: RunOnBox) -> EndsItself:
    """See EndItself. Asked twice it calls once, unless the first call was refused."""
    path, verb = run.scratch.own_end, question.verb
    before = read_own_end(path)
    said = (before.said or None) if before else None
    if before and before.verb == verb and (before.by or _is_under_way(before)):
        return EndsItself((), begun_at=before.at, said=said)
    if question.is_look:
        return EndsItself((), said=said)
    quiet = box_asks.End(question.queues, question.credentials, question.beside)
    if alive := _end(quiet, run).alive:
        return EndsItself(alive)
    names, found = OWN[question.provider], end_itself.given_by(question.provider)
    if found.get(names.id) != question.id:
        return EndsItself((), problem=_no_such_id(names, found, question.id), said=said)
    if not found.get(names.key):
        what = _("this box has no key of its own ({name} is not set)", name=names.key)
        return EndsItself((), problem=what, said=said)
    begun_at = end_itself.begin_own_end(path, question.provider, verb, found)
    return EndsItself((), begun_at=begun_at, said=said)


def _is_under_way(before: OwnEnd) -> bool:
    age_s = timestamp.seconds_between(before.at, timestamp.utc_now())
    return not before.is_over and 0 <= age_s < _DEAD_AFTER_S


def _no_such_id(names: Own, found: Mapping[str, str], wanted: str) -> str:
    there = found.get(names.id)
    if not there:
        return _("this box does not know its own id ({name} is not set)", name=names.id)
    return _("this box is {there}, not {wanted}; it was left alone", there=there, wanted=wanted)


def _others(run: RunOnBox, allowed: Collection[str]) -> tuple[AtWork, ...]:
    return tuple(
        one
        for other in others.at_work_beside(run)
        if other.run not in allowed
        for one in (
            *(AtWork(queue=queue, run=other.run) for queue in other.queues),
            *(AtWork(cell=cell, run=other.run) for cell in other.cells),
        )
    )


def _try_take(path: Path, held: contextlib.ExitStack) -> bool:
    """Take the lock until the end of `held`; False where somebody else has it."""
    if not path.parent.is_dir():
        return True  # nothing was ever started here
    fd = lock.hold(path, PATIENCE_S)
    if fd is not None:
        held.callback(os.close, fd)
    return fd is not None


def _refuse_other_file(path: Path) -> None:
    if not path.is_symlink() and not path.exists():
        return
    data = read_plain(path.parent, path.name)
    try:
        record = json.loads(data or b"")
    except ValueError:
        record = None
    if not isinstance(record, dict) or not {"env", "webhooks"} <= set(record):
        raise InputError(
            _(
                "{path}: expected the credentials that Boxcar wrote, found another file. It "
                "stays, and nothing was removed: look at it, and remove it yourself",
                path=path,
            )
        )


def _remove(secrets: Path) -> None:
    if secrets.parent.is_dir():
        credentials_in.remove_unfinished(secrets)
        secrets.unlink(missing_ok=True)
        atomic.sync_folder(secrets.parent)
