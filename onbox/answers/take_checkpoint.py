"""A live checkpoint that another box left, and the laptop lends to this one."""

from __future__ import annotations

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec, manifest, resume_pointer
from boxcar.shared.wire import asks


def answer(question: asks.TakeCheckpoint, run: asks.RunOnBox) -> asks.CheckpointTaken:
    """Have the cell continue from the file that was sent, once it is what the pointer says.

    One that this box mirrored itself is kept. Raises DamagedError, InputError.
    """
    folder = run.tier.resume(question.cell)
    if paths.has_symlink(run.tier.root, str(folder.relative_to(run.tier.root))):
        raise InputError(f"{folder}: is a symbolic link; nothing is written through it")
    if (folder / resume_pointer.FILE).exists():
        return asks.CheckpointTaken(is_new=False)
    if difference := manifest.compare_one(folder, question.pointer.file):
        raise DamagedError(
            f"{question.cell}: the checkpoint that was sent is not whole: {difference.path} "
            f"{difference.problem}"
        )
    atomic.sync_file(folder / question.pointer.file.path)
    atomic.sync_folder(folder)
    atomic.write_whole(folder / resume_pointer.FILE, codec.to_document(question.pointer))
    return asks.CheckpointTaken(is_new=True)
