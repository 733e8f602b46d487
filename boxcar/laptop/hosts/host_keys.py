"""Which machine answers under an alias: the project's own known_hosts, and a receipt for each.

Trust on first use: the first key is recorded and said, with its fingerprint to compare; every later
contact must show the same one. `hosts/<alias>.json` is that receipt. `box` in it is what the box
said of itself (hello.py); it goes when another key is recorded, and the receipt may be removed by
hand to accept the box as it is now.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import ssh_errors
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, DamagedError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# A box says it, and a person copies it.
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class HostRecord:
    FORMAT: ClassVar[str] = "host"
    VERSION: ClassVar[int] = 1

    alias: str
    host: str
    port: int
    fingerprint: str
    at: str
    box: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def read_host_keys(home: Home, alias: str) -> HostRecord | None:
    """The receipt, or None. Raises DamagedError."""
    file = home.host(alias)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return codec.from_document(HostRecord, data, str(file))
    except DamagedError as damage:
        accept = f"rm {shlex.quote(str(file))}"
        raise DamagedError(
            _("{damage}. To record its key again, type: {accept}", damage=damage, accept=accept)
        ) from damage


def instance_id(home: Home, alias: str) -> str | None:
    """The platform's id of the box, as the box itself gave it; None for one that is not known, or
    that a person could not copy into a command.
    """
    try:
        record = read_host_keys(home, alias)
    except (DamagedError, OSError):
        return None
    said = str((record.box or {}).get("instance_id") or "") if record else ""
    return said if _PLAIN_ID.fullmatch(said) else None


def fingerprints(home: Home, alias: str) -> list[str]:
    """The recorded ones; more than one where somebody added a key of another type."""
    file = home.known_hosts
    if not file.exists():
        return []
    words = ["ssh-keygen", "-l", "-F", alias, "-f", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    lines = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    return [word for line in lines for word in line if word.startswith("SHA256:")]


def note_key(
    home: Home, alias: str, settings: Mapping[str, str], tell: Callable[[str], None]
) -> HostRecord | None:
    """Write the receipt for a key that ssh has just accepted, unless it is there; tell it once.

    `settings` is what `ssh -G` says. Returns None where ssh recorded no key (a connection that
    somebody else authenticates, such as a proxy's).
    """
    recorded = fingerprints(home, alias)
    record = read_host_keys(home, alias)
    if not recorded or (record is not None and record.fingerprint in recorded):
        return record
    host, port = settings.get("hostname", alias), int(settings.get("port", "22"))
    _write(home, new := HostRecord(alias, host, port, recorded[0], timestamp.utc_now()))
    before = _(" (before: {key})", key=record.fingerprint) if record else ""
    tell(
        _(
            "{alias} is {host} port {port}, seen for the first time; its key is {key}{before}. "
            "From now on no other key is accepted under this name.",
            alias=alias,
            host=host,
            port=port,
            key=recorded[0],
            before=before,
        )
    )
    return new


def forget_host(home: Home, alias: str) -> None:
    """Another machine is to answer under this alias: its key and receipt go."""
    if home.known_hosts.exists():
        words = ["ssh-keygen", "-R", alias, "-f", str(home.known_hosts)]
        subprocess.run(words, capture_output=True, check=False)
    home.host(alias).unlink(missing_ok=True)


def note_box(home: Home, alias: str, box: dict[str, Any]) -> None:
    """Keep what the box said of itself beside its key."""
    record = read_host_keys(home, alias)
    if record is not None and record.box != box:
        _write(home, replace(record, box=box))


def ssh_error(home: Home, alias: str, said: str, jumps: Sequence[str] = ()) -> BoxcarError:
    """What ssh said when it ended by itself, as an error that knows the recorded keys. `jumps` are
    the hosts of its ProxyJump.
    """
    return ssh_errors.read_ssh_error(
        alias,
        said,
        recorded=fingerprints(home, alias),
        # What a person types to accept another key after the box was rented anew.
        forget=shlex.join(["ssh-keygen", "-R", alias, "-f", str(home.known_hosts)]),
        jumps=jumps,
        instance=instance_id(home, alias),
    )


def _write(home: Home, record: HostRecord) -> None:
    file = home.host(record.alias)
    atomic.make_folder(file.parent)
    atomic.write_whole(file, codec.to_document(record))
