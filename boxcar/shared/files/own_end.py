"""That a box has called its provider's API to end itself, and what that said.

Written by the box before the call and after it, on scratch: it goes with the box where the provider
did as it was told.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class OwnEnd:
    """`verb`: stop or destroy; `at`: when the call began. `by`: who took it, such as `vast v0` or
    `runpodctl`, None while nobody has; `said`: what was answered, without a secret.
    """

    FORMAT: ClassVar[str] = "own_end"
    VERSION: ClassVar[int] = 1

    verb: str
    at: str
    by: str | None = None
    said: str = ""
    is_over: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def read_own_end(path: Path) -> OwnEnd | None:
    """None where there is none that can be read: then nothing is known of a call."""
    try:
        return codec.from_document(OwnEnd, path.read_bytes(), str(path))
    except (OSError, DamagedError):
        return None
