"""What a person wants of a queue's agent, written into the control file that the agent reads."""

from __future__ import annotations

from typing import Any

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec
from boxcar.shared.files.control import Control
from onbox.answers.request import Request


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Replace the queue's control file by `document`, the fields of a Control."""
    asked = Request(request)
    path = asked.tier.control(asked.queue)
    document = asked.value("document", dict)
    fields = {name: item for name, item in document.items() if name != "format"}
    try:
        wanted = codec.decode(Control, fields, "document")
    except DamagedError as error:
        raise InputError(str(error)) from error
    if paths.has_symlink(asked.tier.root, path.parent.name):
        raise InputError(f"{path.parent}: is a symbolic link; nothing is written through it")
    atomic.make_folder(path.parent)
    atomic.write_whole(path, codec.to_document(wanted))
    return {}
