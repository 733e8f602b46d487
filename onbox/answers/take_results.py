"""Results that the laptop has proven and this box, which was rented anew, knows nothing of.

The manifest comes last: until then the cell is one that was never begun. It stands for bytes that
lie on the laptop; here they are put in place only where another cell needs them, and only as the
manifest says.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from boxcar.shared import paths
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.shared.files import codec, manifest, receipt
from boxcar.shared.files.manifest import Manifest
from boxcar.shared.paths import DurablePaths
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from boxcar.shared.wire.run_asks import LentResult
from onbox.answers import know_results
from onbox.slurm import ownership

# Whoever only looks whether a lock is held has it for an instant.
PATIENCE_S = 0.5


def answer(question: run_asks.TakeResults, run: RunOnBox) -> run_asks.ResultsTaken:
    """Done twice it is done once. Raises InputError for what is not this run's, TemporaryError
    where the queue's agent is at work, OSError.
    """
    made = [(lent, _checked(lent, run, question.queue)) for lent in question.results]
    lacking: dict[str, str] = {}
    with _kept_still(question, run.tier):
        tried = know_results.tried_cells(run.tier, question.queue)
        for lent, found in made:
            if found.cell in tried:
                continue
            if lent.has_files and (problem := _put_in_place(run.tier, found)):
                lacking[found.cell] = problem
                continue
            _take(run.tier, lent)
    return run_asks.ResultsTaken(lacking)


def _checked(lent: LentResult, run: RunOnBox, queue: str) -> Manifest:
    """Its manifest, once all parts are of one result of this run."""
    cell, sha256 = lent.document.cell, digest.of_bytes(lent.manifest)
    found = manifest.parse_manifest(lent.manifest, f"the manifest of {cell}")
    bound_to = [sha256]
    if lent.receipt is not None:
        bound_to += [codec.from_document(receipt.CellReceipt, lent.receipt, cell).manifest_sha256]
    is_its_own = (found.run, found.cell, lent.claim.queue) == (run.run, cell, queue)
    if not is_its_own or {*bound_to, lent.document.manifest_sha256} != {sha256}:
        raise InputError(
            _(
                "{cell}: what was lent of it is not one result of the run {run}",
                cell=cell,
                run=run.run,
            )
        )
    for path in (run.tier.manifest(cell), run.tier.accepted(cell), run.tier.claim(cell)):
        if paths.has_symlink(run.tier.root, path.relative_to(run.tier.root).as_posix()):
            raise InputError(
                _("{path}: is a symbolic link; nothing is written through it", path=path)
            )
    there = run.tier.manifest(cell)
    if there.exists() and there.read_bytes() != lent.manifest:
        raise InputError(_("{cell}: has another result here, which stays", cell=cell))
    return found


def _put_in_place(tier: DurablePaths, made: Manifest) -> str | None:
    """The files that were sent; why they are not the published ones, or None."""
    sent, folder = tier.lent(made.cell), tier.cell(made.cell)
    left = [file for file in made.files if manifest.compare_one(folder, file)]
    if wrong := manifest.compare(sent, tuple(left)):
        return f"{wrong[0].path} {wrong[0].problem}"
    for file in left:
        source, target = paths.inside(sent, file.path), paths.inside(folder, file.path)
        if paths.has_symlink(folder, file.path):
            raise DamagedError(
                _("{target}: is a symbolic link; nothing is written through it", target=target)
            )
        atomic.make_folder(target.parent)
        atomic.sync_file(source)
        source.replace(target)
        atomic.sync_folder(target.parent)
    shutil.rmtree(sent, ignore_errors=True)
    return None


def _take(tier: DurablePaths, lent: LentResult) -> None:
    """The manifest last."""
    cell = lent.document.cell
    written = {
        tier.accepted(cell): codec.to_document(lent.document),
        tier.claim(cell): codec.to_document(lent.claim),
        tier.manifest(cell): lent.manifest,
    }
    if lent.receipt is not None:
        written = {tier.receipt(cell): lent.receipt} | written
    for path, data in written.items():
        atomic.make_folder(path.parent)
        if not path.exists() or path.read_bytes() != data:
            atomic.write_whole(path, data)


@contextlib.contextmanager
def _kept_still(question: run_asks.TakeResults, tier: DurablePaths) -> Iterator[None]:
    """While no agent of the queue runs, except for files of results that it has taken already."""
    if all(
        lent.has_files and tier.manifest(lent.document.cell).exists() for lent in question.results
    ):
        yield
        return
    path = tier.lock(question.queue)
    atomic.make_folder(path.parent)
    fd = ownership.hold(tier, question.queue, PATIENCE_S)
    if fd is None:
        raise TemporaryError(
            _("the agent of {queue} is at work, so nothing was lent to it", queue=question.queue)
        )
    try:
        yield
    finally:
        os.close(fd)
