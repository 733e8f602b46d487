"""What is said of an attempt that could not be run, and the exit code that it ends with."""

from __future__ import annotations

import traceback

from boxcar.shared import exit_codes
from boxcar.shared.errors import BoxcarError
from onbox.cell.wrapper import words
from onbox.machine import terminal


def said(error: Exception) -> int:
    """Says it on the terminal, which is the cell's log."""
    if isinstance(error, BoxcarError):
        terminal.say(f"onbox: {error}")
        return error.exit_code
    if isinstance(error, OSError):
        terminal.say(f"onbox: {error.filename}: {error.strerror}")
        return exit_codes.TEMPORARY
    if isinstance(error, (words.Misspelled, ValueError)):
        terminal.say(f"{words.USAGE}\nonbox attempt: {error}")
        return exit_codes.INPUT
    terminal.say("".join(traceback.format_exception(error)).rstrip())
    return exit_codes.FAILED
