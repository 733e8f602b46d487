"""What a person wants of a queue's agent, written into the control file that the agent reads."""

from __future__ import annotations

from typing import Any

from boxcar.formats import codec, durable, paths
from boxcar.formats.control import Control
from boxcar.formats.errors import DamagedError, InputError
from onbox.request import Request


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
        raise InputError(f"{path.parent}: a symbolic link; nothing is written behind it")
    durable.make_folder(path.parent)
    durable.write_whole(path, codec.to_document(wanted))
    return {}
