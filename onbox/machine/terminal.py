"""What the agent says on its terminal, which is a log on a disk that may be full."""

from __future__ import annotations

import contextlib
import os

from boxcar.shared.errors import BoxcarError
from boxcar.shared.process import exit_codes

_STDERR = 2


def say(text: str) -> None:
    """One line, as far as there is room. Raises nothing, and leaves nothing behind to be written.

    Without Python's buffer: what could not be written would be tried again at the very end, and
    change the exit code.
    """
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"{text}\n".encode(errors="backslashreplace"))


def say_error(error: BoxcarError | OSError) -> int:
    """Says why a verb of the box has ended; its exit code."""
    if isinstance(error, BoxcarError):
        say(f"onbox: {error}")
        return error.exit_code
    say(f"onbox: {error.filename}: {error.strerror}")
    return exit_codes.TEMPORARY
