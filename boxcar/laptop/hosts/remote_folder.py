"""A folder on a box, and a command there that no login shell can misread.

sshd hands one line of text to the box's login shell: bash, zsh, fish, csh. What these shells read
alike is a word of letters, and text between single quotes that holds no quote, no `!`, no line
break and no two backslashes in a row. So the script is such a text, and the path travels in it as
octal numbers wherever it is not plain.

And what the end of such a command means: a full disk, a cut link, or a box that lets nobody in.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.laptop.hosts import host_keys
from boxcar.laptop.hosts.ssh_errors import LinkCut
from boxcar.shared.errors import BoxcarError, InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

if TYPE_CHECKING:
    from boxcar.laptop.hosts.connection import Ssh

# What a script says on stderr where the folder is not there.
NO_FOLDER = "BOXCAR-NO-FOLDER"
# A side that hears nothing for so long ends.
SILENT_FOR_S = 60
GOES_ON = _("The same command continues where this one stopped")
# In words, because the numbers of another system are other ones; rsync puts both.
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|\((?:28|122)\)")
_PLAIN = re.compile(rb"[A-Za-z0-9_/.,=@-]")
# $1 with its octal numbers spelled out, in $d. The x keeps line breaks at the end of a name.
_SPELL = 'LC_ALL=C; export LC_ALL; d=$(printf %bx "$1"); d=${d%x}; shift;'
GO = f'cd "$d" || {{ echo {NO_FOLDER} >&2; exit 1; }};'
MAKE_AND_GO = 'mkdir -p "$d" && cd "$d" || exit 1;'


@dataclass(frozen=True)
class Remote:
    """A folder on a box: `path` is absolute there; who has `~/` expands it first."""

    ssh: Ssh
    path: str
    has_rsync: bool = True

    def __post_init__(self) -> None:
        if not self.path.startswith("/") or "\0" in self.path:
            raise InputError(
                _(
                    "{alias}: expected an absolute path on the box, found {what!r}",
                    alias=self.ssh.alias,
                    what=self.path,
                )
            )

    def __str__(self) -> str:
        return f"{self.ssh.alias}:{self.path}"

    def command(self, script: str) -> str:
        """One word list for the login shell that runs `script` in sh, with the folder as `$d`.

        Words that are put behind it are the script's "$@". Raises ValueError for a script that
        not every shell would read alike.
        """
        if re.search(r"['!\n]|\\\\", script):
            raise ValueError(
                _("not all login shells read this in the same way: {script}", script=script)
            )
        octal = _PLAIN.sub(b"", bytes(range(256)))
        spelled = "".join(
            f"\\0{byte:03o}" if byte in octal else chr(byte) for byte in os.fsencode(self.path)
        )
        return f"sh -c '{_SPELL} {script}' sh '{spelled}'"


def is_no_room(words: str) -> bool:
    return _NO_ROOM.search(words) is not None


def no_room(told: str, destination: Path | Remote) -> Sentence:
    where: str = _("this machine")
    if isinstance(destination, Remote):
        where = destination.ssh.alias
    return _(
        "{told}. Free some space on {where} (bytes: df -h, inodes: df -i) and run the same command "
        "again",
        told=told,
        where=where,
    )


def link_error(place: Remote, words: str, why: str) -> BoxcarError:
    """For a connection that ended while files were copied: `words` are what ssh and the command
    said, `why` the rest.
    """
    refusal = host_keys.ssh_error(place.ssh.home, place.ssh.alias, words)
    if isinstance(refusal, LinkCut):
        told = _("the connection was lost while files were copied ({why})", why=why)
        return LinkCut(place.ssh.alias, told, GOES_ON)
    return refusal
