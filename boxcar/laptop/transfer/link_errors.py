"""What a transfer's end over ssh means: a full disk, a cut link, or a box that lets nobody in."""

from __future__ import annotations

import re
from pathlib import Path

from boxcar.laptop.ssh import host_keys
from boxcar.laptop.ssh.ssh_errors import LinkCut
from boxcar.laptop.transfer.remote_folder import Remote
from boxcar.shared.errors import BoxcarError

GOES_ON = "The same command continues where this one stopped."
# In words, because the numbers of another system are other ones; rsync puts both.
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|\((?:28|122)\)")


def is_no_room(words: str) -> bool:
    return _NO_ROOM.search(words) is not None


def no_room(told: str, destination: Path | Remote) -> str:
    where = f"on {destination.ssh.alias}" if isinstance(destination, Remote) else "on that disk"
    return (
        f"{told}. Make room {where} (bytes: df -h, inodes: df -i) and run the same command again."
    )


def error(place: Remote, words: str, told: str) -> BoxcarError:
    """For a connection that ended: `words` are what ssh and the command said, `told` the rest."""
    found = host_keys.error(place.ssh.home, place.ssh.alias, words)
    if found is None or isinstance(found, LinkCut):
        return LinkCut(place.ssh.alias, f"the link was cut: {told}", GOES_ON)
    return found
