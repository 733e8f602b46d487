"""That a box was set up, written down: by the digest of what was asked.

A record beside the box's scratch is believed only while its twin is there on the disk that the
packages are on, which a new container does not have.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import _

# Where packages live, as far as one can tell: the disk of the system.
TWINS = Path("/var/tmp")


def digest_of(plan: Plan, code: Path) -> str:
    """Of all that the set-up is made from. Raises DamagedError for a file that is not there."""
    names = [name for name in (plan.setup, plan.requirements) if name]
    try:
        files = {name: digest.of_file(code / name) for name in names}
    except OSError as error:
        raise DamagedError(_("the set-up cannot be read: {error}", error=error)) from error
    return digest.of_json(
        {"files": files, "is_installed": plan.install, "python": plan.training_python}
    )


def is_done(folder: Path, asked: str) -> bool:
    with contextlib.suppress(OSError):
        said = (folder / f"{asked}.done").read_bytes()
        return bool(said) and _twin(folder, asked).read_bytes() == said
    return False


def mark_done(folder: Path, asked: str) -> None:
    nonce = os.urandom(16).hex().encode()
    twin = _twin(folder, asked)
    with contextlib.suppress(OSError):
        twin.unlink()
    fd = os.open(twin, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:  # noqa: PTH123
        file.write(nonce)
    atomic.write_whole(folder / f"{asked}.done", nonce)


def _twin(folder: Path, asked: str) -> Path:
    return TWINS / f"boxcar-setup-{digest.of_bytes(f'{folder} {asked}'.encode())[:32]}"


def forget(folder: Path, asked: str) -> None:
    """It is done again by the next agent."""
    for path in (folder / f"{asked}.done", _twin(folder, asked)):
        path.unlink(missing_ok=True)
