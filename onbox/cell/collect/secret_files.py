"""Files that may hold a secret: by their names, or because a secret of this run stands in them.

Trackers leave settings, and scripts dump their environment, beside logs that somebody will show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from boxcar.shared.disk import regular_file
from boxcar.shared.disk.digest import BLOCK_BYTES

# In the spelling of fnmatch, in lower case; with its folder where a name alone says too little.
_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", "env.txt", "env.json", "environ", "environ.*"),
    *("environment.txt", "environment.json", "printenv*", "*.netrc", "_netrc", ".git-credentials"),
    *("credentials", "credentials.*", "secrets", "secrets.*", "*.pem", "*.key"),
    *("id_rsa", "id_ecdsa", "id_ed25519", ".pypirc", ".huggingface_token", "wandb/settings"),
)
# A shorter value is found in files that have nothing to do with it.
SHORTEST_BYTES = 8


def is_by_name(path: str) -> bool:
    """Whether a file of this path is one of those in which secrets are kept."""
    whole = f"/{path.casefold()}"
    return any(fnmatchcase(whole, f"*/{name}") for name in _NAMES)


def long_enough(values: Iterable[str]) -> list[bytes]:
    """Those that are looked for in files."""
    return [data for value in values if len(data := value.encode()) >= SHORTEST_BYTES]


def holds_any(path: Path, values: Sequence[bytes]) -> bool:
    """Whether one of these stands in the file. Raises OSError."""
    overlap = max(map(len, values), default=1) - 1
    if not values:
        return False
    with regular_file.open_at(path) as file:
        end = b""
        while block := file.read(BLOCK_BYTES):
            if any(value in end + block for value in values):
                return True
            end = (end + block)[-overlap:] if overlap else b""
    return False
