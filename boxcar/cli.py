"""Where an installed `boxcar` begins. Imports take a while, and Ctrl-C in them says nothing."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # imports nothing in its turn

# An exception would be said, with its traceback, by whichever import it meets.
_before = signal.getsignal(signal.SIGINT)
if _before is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from boxcar.door import program  # noqa: E402 (after the line that makes it quiet)

signal.signal(signal.SIGINT, _before)

__all__ = ["program"]
