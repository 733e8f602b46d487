"""`.boxcar/ssh_config`: aliases of rented boxes for a person's own `ssh`. Boxcar needs it not."""

from __future__ import annotations

from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.providers.rented_record import RentedBox, records_of
from boxcar.shared.disk import atomic


def write_ssh_config(root: Path) -> Path | None:
    """Its path, or None where no rented box of this project has an address."""
    boxes = {one.box: one for one in records_of(root) if one.up_at and not one.replaced_at}
    home = Home(root)
    if not boxes and not home.ssh_config.exists():
        return None
    atomic.make_folder(home.folder)
    text = "".join(_entry(home, one) for one in boxes.values())
    atomic.write_whole(home.ssh_config, text.encode(), mode=0o600)
    return home.ssh_config if boxes else None


def _entry(home: Home, record: RentedBox) -> str:
    """Host, port and user were checked when the provider's answer was read (`values.py`)."""
    lines = [
        f"Host {record.box}",
        f"  HostName {record.host}",
        f"  Port {record.port}",
        *([f"  User {record.user}"] if record.user else []),
        f"  HostKeyAlias {record.box}",
        f'  UserKnownHostsFile "{home.known_hosts}"',
    ]
    return "\n".join(lines) + "\n\n"
