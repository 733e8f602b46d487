"""What the laptop has proven of a result that is published here, kept for the agents.

The document is bound to one manifest: where the cell was published again since, it would mean
nothing, and is refused.
"""

from __future__ import annotations

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, InputError
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox


def answer(question: run_asks.Accept, run: RunOnBox) -> run_asks.AcceptanceKept:
    """Done twice it is done once. Raises InputError where it is of no result that is here."""
    made, path = question.document, run.tier.accepted(question.document.cell)
    if paths.has_symlink(run.tier.root, f"{path.parent.name}/{path.name}"):
        raise InputError(_("{path}: is a symbolic link; nothing is written through it", path=path))
    _refuse_another(made, run)
    data = codec.to_document(made)
    if path.exists() and path.read_bytes() == data:
        return run_asks.AcceptanceKept(is_new=False)
    atomic.make_folder(path.parent)
    atomic.write_whole(path, data)
    return run_asks.AcceptanceKept(is_new=True)


def _refuse_another(made: Accepted, run: RunOnBox) -> None:
    if made.run != run.run:
        raise InputError(
            _(
                "{cell}: what was proven is of the run {run!r}, not {run_2!r}",
                cell=made.cell,
                run=made.run,
                run_2=run.run,
            )
        )
    try:
        found = manifest.sha256(run.tier.manifest(made.cell))
    except FileNotFoundError:
        found = None
    if found != made.manifest_sha256:
        what = "was published again since" if found else "is not published here"
        raise InputError(
            _("{cell} {what}, so what was proven is not kept. See", cell=made.cell, what=what),
            Command("pull"),
        )
