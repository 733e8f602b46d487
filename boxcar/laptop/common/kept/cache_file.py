"""A file of what was worked out before: lost, damaged or of another Boxcar it is worked out anew.

Whoever keeps something there says by which bytes it is known, and who may believe it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar import __version__
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.journal_chain import LINE_FEED


def read(path: Path, shape: Any, take: Callable[[Any], None]) -> None:
    """Give `take` what is kept there. `shape`: how that is written, such as the names of the fields
    that stand in its rows. A file that `take` cannot make anything of is removed, too.
    """
    try:
        with path.open("rb") as file:
            head, body = file.readline(), file.read()
        if digest.of_bytes(body).encode() + LINE_FEED != head:
            raise ValueError("damaged")
        ours, kept = json.loads(body)
        if ours != json.loads(json.dumps([__version__, shape])):
            raise ValueError("of another Boxcar")
        take(kept)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, TypeError, KeyError, IndexError, DamagedError):
        with contextlib.suppress(OSError):
            path.unlink()


def write(path: Path, shape: Any, kept: Any) -> bool:
    """Whole or not at all, without an fsync. Whether it was: a full disk stops nobody's look."""
    body = json.dumps([[__version__, shape], kept], separators=(",", ":")).encode()
    with contextlib.suppress(OSError):
        atomic.make_folder(path.parent)
        atomic.replace_by(path, digest.of_bytes(body).encode() + LINE_FEED + body, is_synced=False)
        return True
    return False
