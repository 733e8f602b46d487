"""A cell is given to another queue: its claim is replaced by rename, and is never gone between.

A cell that nobody has claimed is the new queue's once the claim is made: of two that make it at the
same moment one has it, so an agent that runs is no reason to wait. Else the lock of the queue that
had it is held meanwhile, so no agent of it takes the cell up in the same moment. One that comes
later finds whose the cell is, and skips it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, InputError
from boxcar.shared.files import attempt, codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.slurm import ownership

# Whoever only looks whether a lock is held has it for an instant.
PATIENCE_S = 0.5


def answer(question: run_asks.MoveClaim, run: RunOnBox) -> run_asks.ClaimMoved:
    """Done twice it is done once. Raises InputError where the cell is not that queue's to give."""
    path, claim = run.tier.claim(question.claim.cell), question.claim
    if paths.has_symlink(run.tier.root, f"claims/{path.name}"):
        raise InputError(_("{path}: is a symbolic link; nothing is written through it", path=path))
    atomic.make_folder(path.parent)
    if attempt.read_claim(path) is None and atomic.create_once(path, codec.to_document(claim)):
        return run_asks.ClaimMoved(is_new=True)
    if _is_moved(attempt.read_claim(path), claim):
        return run_asks.ClaimMoved(is_new=False)
    with _kept_still(question, run):
        there = attempt.read_claim(path)
        if there is None or there.queue not in (question.queue_before, claim.queue):
            owner = there.queue if there else "somebody else"
            raise InputError(
                _("{cell} belongs to {owner} by now. Look again", cell=claim.cell, owner=owner),
                Command("status"),
            )
        if run.tier.manifest(claim.cell).exists() and not question.is_told:
            raise InputError(
                _("{cell} is published by now, so it stays. See", cell=claim.cell),
                Command("status"),
            )
        atomic.write_whole(path, codec.to_document(replace(claim, saying=there.saying)))
    return run_asks.ClaimMoved(is_new=True)


def _is_moved(there: Claim | None, claim: Claim) -> bool:
    """Whether this very move was made, perhaps by a command that was killed before its lines."""
    return there is not None and (there.queue, there.moved_from) == (claim.queue, claim.moved_from)


@contextlib.contextmanager
def _kept_still(question: run_asks.MoveClaim, run: RunOnBox) -> Iterator[None]:
    """While no agent of the queue that had the cell runs; where it is only told, at once."""
    if question.is_told:
        yield
        return
    path = run.tier.lock(question.queue_before)
    atomic.make_folder(path.parent)
    fd = ownership.hold(run.tier, question.queue_before, PATIENCE_S)
    if fd is None:
        raise InputError(
            _(
                "the agent of {queue_before} is at work, so {cell} stays",
                queue_before=question.queue_before,
                cell=question.claim.cell,
            ),
            Command("stop", ("--queue", question.queue_before)),
        )
    try:
        yield
    finally:
        os.close(fd)
