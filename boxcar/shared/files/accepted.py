"""That the laptop has proven a result which its box called bad, could not check, or has lost.

`verify` has it written on the durable tier, and `launch` on that of a box that was rented anew, so
that no agent trains the cell again. It holds for one manifest, and says nothing of any other
result.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import codec, manifest
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass

# Who proved it, in `cell.verified`.
LAPTOP = "laptop"


@dataclass(frozen=True)
class Accepted:
    """`unpickled` are the files that were loaded because a person had allowed it by name; `boxcar`
    is the version that loaded them. `is_lent`: the box was rented anew; of the result it has the
    manifest, and the files only where a cell comes after it.
    """

    FORMAT: ClassVar[str] = "accepted"
    VERSION: ClassVar[int] = 1
    CHECKED_SINCE: ClassVar[int] = 1

    run: str
    cell: str
    manifest_sha256: str
    at: str
    unpickled: tuple[str, ...]
    boxcar: str
    is_lent: bool = field(default=False, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_accepted(path: Path) -> Accepted | None:
    """None where there is none. Raises DamagedError with the way out, OSError."""
    try:
        return codec.from_document(Accepted, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except NewerError:
        raise
    except DamagedError as error:
        raise DamagedError(f"{error}; `verify` on the laptop writes it anew") from error


def accepted_result(tier: DurablePaths, cell: str) -> Accepted | None:
    """That of the very result that is published now. Raises DamagedError, OSError."""
    found = read_accepted(tier.accepted(cell))
    if found is None:
        return None
    try:
        bound_to = (tier.run, cell, manifest.sha256(tier.manifest(cell)))
    except FileNotFoundError:
        return None
    return found if (found.run, found.cell, found.manifest_sha256) == bound_to else None
