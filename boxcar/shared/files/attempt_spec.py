"""What one attempt at a cell runs, and where: all that the program on the box has to be told.

The agent writes it whole before it starts `run_one.sh SPEC`, for its user alone. It holds no
secret, only where the credentials' file is.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _


@dataclass(frozen=True)
class AttemptSpec:
    """`words` come after the launcher's own, and `env` over the environment of the box.

    `ranks` are one node's. After `limit_s` it is told to leave; `grace_s` is what the platform
    gives it then. `python` is the training's, `python_path` what it finds beside `workdir`, and
    `resume` where its checkpoint is or will be. Paths are absolute.
    """

    FORMAT: ClassVar[str] = "attempt-spec"
    VERSION: ClassVar[int] = 1

    run: str
    cell: str
    attempt: int
    release: str
    launcher: str
    words: tuple[str, ...]
    env: dict[str, str]
    ranks: int
    nodes: int
    python: str
    python_path: tuple[str, ...]
    workdir: str
    out: str
    resume: str
    data_dir: str
    durable_dir: str
    credentials: str
    grace_s: float
    limit_s: int | None = None
    # Where cells run side by side: which of them this is, and the GPUs that it alone sees.
    slot: int = field(default=0, metadata=codec.LATER)
    gpus: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    # The folder of links to the job's data; "" where it has none.
    data: str = field(default="", metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


# Stands in each run_one.sh that takes such a document, and in no other.
NAME = f"boxcar.{AttemptSpec.FORMAT}/{AttemptSpec.VERSION}"


def write_attempt_spec(path: Path, spec: AttemptSpec) -> None:
    atomic.write_whole(path, codec.to_document(spec), mode=0o600)


def read_attempt_spec(path: Path) -> AttemptSpec:
    """Raises InputError for one that is cut off, or of a newer version; OSError."""
    try:
        return codec.from_document(AttemptSpec, path.read_bytes(), str(path))
    except DamagedError as error:
        raise InputError(_("{error}. Nothing was run", error=error)) from error
