"""Where an installed `boxcar` begins. Imports take a while, and Ctrl-C in them says nothing."""

from __future__ import annotations

import sys

from boxcar.shared.process import exit_codes

try:
    from boxcar.door import program
except KeyboardInterrupt:
    sys.exit(exit_codes.INTERRUPTED)

__all__ = ["program"]
