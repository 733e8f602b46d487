"""Where webhooks arrive on this machine, kept for the next time: agents go on sending there.

The secret is a file of its own that only its owner can read, so that a shell can take it from
there, and it is never printed.
"""

from __future__ import annotations

import json
from pathlib import Path

from boxcar.laptop.webhooks.receiver import make_secret
from boxcar.shared.disk import atomic
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Address:
    """`port` is the one that boxes were told, 0 where none was yet; `through` are those boxes whose
    own 127.0.0.1 leads here by it.
    """

    port: int = 0
    through: tuple[str, ...] = ()


def read(path: Path) -> Address:
    """An empty one where there is none that can be read: then boxes are told anew."""
    try:
        kept = json.loads(path.read_bytes())
        return Address(int(kept["port"]), tuple(map(str, kept.get("through", ()))))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Address()


def write(path: Path, address: Address) -> None:
    atomic.make_folder(path.parent)
    record = {"port": address.port, "through": list(address.through)}
    atomic.write_whole(path, json.dumps(record).encode())


def secret(path: Path) -> str:
    """The kept one, or a new one that is kept from now on. Raises OSError."""
    try:
        if kept := path.read_text().strip():
            return kept
    except FileNotFoundError:
        pass
    made = make_secret()
    atomic.make_folder(path.parent)
    atomic.write_whole(path, f"{made}\n".encode(), mode=0o600)
    return made
