"""A live checkpoint that a lost box left, and the laptop lends to this one.

What this box knows of its own attempts is newer, and may have been put aside for a reason: a cell
that the queue has tried is lent nothing.
"""

from __future__ import annotations

from boxcar.shared import paths, state
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, journal, manifest, resume_pointer
from boxcar.shared.paths import DurablePaths
from boxcar.shared.wire import asks


def answer(question: asks.TakeCheckpoint, run: asks.RunOnBox) -> asks.CheckpointTaken:
    """Have the cell continue from the file once it is what the pointer says. Raises InputError."""
    folder, file = run.tier.resume(question.cell), question.pointer.file
    if paths.has_symlink(run.tier.root, str(folder.relative_to(run.tier.root))):
        raise InputError(f"{folder}: is a symbolic link; nothing is written through it")
    if (folder / resume_pointer.FILE).exists() or _was_tried(run.tier, question):
        return asks.CheckpointTaken(is_taken=False, is_lacking=False)
    if manifest.compare_one(folder, file):
        return asks.CheckpointTaken(is_taken=False, is_lacking=True)
    atomic.sync_file(paths.inside(folder, file.path))
    atomic.sync_folder(folder)
    atomic.write_whole(folder / resume_pointer.FILE, codec.to_document(question.pointer))
    return asks.CheckpointTaken(is_taken=True, is_lacking=False)


def _was_tried(tier: DurablePaths, question: asks.TakeCheckpoint) -> bool:
    events = journal.read(tier.journal(question.queue)).events
    record = state.replay(events).cells.get(question.cell)
    return record is not None and record.attempts > 0
