"""A live checkpoint that a lost box left, and the laptop lends to this one.

What this box knows of its own attempts is newer, and may have been put aside for a reason: a cell
that the queue has tried is lent nothing.
"""

from __future__ import annotations

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, manifest, resume_pointer
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import know_results


def answer(question: run_asks.TakeCheckpoint, run: RunOnBox) -> run_asks.CheckpointTaken:
    """Have the cell continue from the file once it is what the pointer says. Raises InputError."""
    folder, file = run.tier.resume(question.cell), question.pointer.file
    if paths.has_symlink(run.tier.root, str(folder.relative_to(run.tier.root))):
        raise InputError(
            _("{folder}: is a symbolic link; nothing is written through it", folder=folder)
        )
    if (folder / resume_pointer.FILE).exists() or _is_known(question, run):
        return run_asks.CheckpointTaken(is_taken=False, is_lacking=False)
    if manifest.compare_one(folder, file):
        return run_asks.CheckpointTaken(is_taken=False, is_lacking=True)
    atomic.sync_file(paths.inside(folder, file.path))
    atomic.sync_folder(folder)
    atomic.write_whole(folder / resume_pointer.FILE, codec.to_document(question.pointer))
    return run_asks.CheckpointTaken(is_taken=True, is_lacking=False)


def _is_known(question: run_asks.TakeCheckpoint, run: RunOnBox) -> bool:
    """Also a result that was lent: nothing continues a cell that is done."""
    is_tried = question.cell in know_results.tried_cells(run.tier, question.queue)
    return is_tried or run.tier.manifest(question.cell).exists()
