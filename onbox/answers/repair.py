"""`repair`: what of the run's files on the durable tier is not as it was written, and putting back
what it was. A damaged file is kept beside it; nothing is put back while an agent may write it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, InputError, TemporaryError
from boxcar.shared.paths import DurablePaths
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import damages
from onbox.answers.damages import NOTHING, Damaged
from onbox.slurm import ownership


def answer(question: run_asks.Repair, run: RunOnBox) -> run_asks.Repaired:
    """Look, and with `is_to_write` put back. Raises TemporaryError where an agent runs, InputError
    where the tier is out of sight.
    """
    found = damages.find(run.tier, question.copies)
    if found and not run.tier.root.is_dir():
        # Below a mount point, what is written would be hidden by the tier once that is back.
        raise InputError(
            _(
                "the run is not in {durable_dir} here: is it mounted?",
                durable_dir=run.tier.durable_dir,
            )
        )
    if not question.is_to_write:
        return run_asks.Repaired(tuple(map(_shown, found)))
    queues = damages.queues(found)
    with _held(run.tier, queues):
        # Again: until the lock was held an agent may have written.
        found = damages.find(run.tier, question.copies)
        if set(damages.queues(found)) - set(queues):
            raise TemporaryError(_("more is damaged than a moment ago"), Command("repair"))
        return run_asks.Repaired(tuple(_put_back(run.tier, damaged) for damaged in found))


def _shown(damaged: Damaged) -> run_asks.Damage:
    return run_asks.Damage(damaged.path, damaged.problem, damaged.source, None, is_put_back=False)


def _put_back(tier: DurablePaths, damaged: Damaged) -> run_asks.Damage:
    if damaged.source is None:
        return _shown(damaged)
    if paths.has_symlink(tier.root, damaged.path):
        raise InputError(
            _("{path}: a symbolic link; nothing is written there", path=tier.root / damaged.path)
        )
    path = paths.inside(tier.root, damaged.path)
    aside = _keep_beside(path)
    if damaged.source != NOTHING:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        atomic.make_folder(path.parent)
        atomic.write_whole(path, damaged.content, mode=mode)
    elif aside:
        path.unlink()
        atomic.sync_folder(path.parent)
    return run_asks.Damage(
        damaged.path, damaged.problem, damaged.source, aside.name if aside else None, True
    )


def _keep_beside(path: Path) -> Path | None:
    """A copy, so that the name is never without a file. One that is there already is not kept
    twice: a repair that was killed may be repeated.
    """
    if not path.exists():
        return None
    data = path.read_bytes()
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        if aside.read_bytes() == data:
            return aside
        number += 1
    atomic.write_whole(aside, data)
    return aside


@contextlib.contextmanager
def _held(tier: DurablePaths, queues: Sequence[str]) -> Iterator[None]:
    held: list[int] = []
    try:
        for queue in queues:
            atomic.make_folder(tier.lock(queue).parent)
            fd = ownership.hold(tier, queue)
            if fd is None:
                raise TemporaryError(
                    _("{queue}: its agent is running, so nothing was put back", queue=queue),
                    Command("stop"),
                )
            held.append(fd)
        yield
    finally:
        _close(held)


def _close(held: Iterable[int]) -> None:
    for fd in held:
        os.close(fd)
