"""A box without a wire: `ssh` that gives its last words to a shell here, as sshd would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts.connection import Ran


class FakeSsh:
    """Has what transports use of `Ssh`. `shell` is the login shell of the box."""

    alias = disk_name = "box-z"
    says = b""  # what a command on the box prints

    def __init__(self, folder: Path, shell: str = "/bin/sh", script: str = "") -> None:
        """`script` is run instead of what was asked, where it is given."""
        self.home = Home(folder)
        self.told: list[str] = []
        self.tell = self.told.append
        self._program = folder / "ssh"
        asked = script or f'shift; exec {shell} -c "$*"'
        self._program.write_text(f"#!/bin/sh\n{asked}\n")
        self._program.chmod(0o755)

    def run(self, words: Sequence[str]) -> Ran:
        return Ran(0, self.says, "")

    def rsync_shell(self, *, has_own: bool = True) -> str:
        return str(self._program)
