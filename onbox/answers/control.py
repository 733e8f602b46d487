"""What a person wants of a queue's agent, written into the control file that the agent reads."""

from __future__ import annotations

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, control
from boxcar.shared.record import replace
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox


def answer(question: run_asks.WriteControl, run: RunOnBox) -> run_asks.ControlWritten:
    """Replace the queue's control file; of a limit only the instant in it."""
    path, document = run.tier.control(question.queue), question.document
    if paths.has_symlink(run.tier.root, path.parent.name):
        raise InputError(
            _("{parent}: is a symbolic link; nothing is written through it", parent=path.parent)
        )
    atomic.make_folder(path.parent)
    if question.is_limit:
        # Another laptop's drain, which this one has not seen yet, stands.
        document = replace(control.read_control(path), begin_until=document.begin_until)
        document = document if document.at else replace(document, at=question.document.at)
    atomic.write_whole(path, codec.to_document(document))
    return run_asks.ControlWritten()
