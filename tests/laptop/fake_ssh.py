"""A box without a wire: `ssh` that gives its last words to a shell here, as sshd would."""

from __future__ import annotations

from pathlib import Path


class FakeSsh:
    """Has what transports use of boxcar.laptop.ssh.Ssh. `shell` is the box's login shell."""

    alias = "box-z"

    def __init__(self, folder: Path, shell: str = "/bin/sh", script: str = "") -> None:
        """`script` is run instead of what was asked, where it is given."""
        self.folder = folder
        self._program = folder / "ssh"
        asked = script or f'shift; exec {shell} -c "$*"'
        self._program.write_text(f"#!/bin/sh\n{asked}\n")
        self._program.chmod(0o755)

    def rsync_shell(self) -> str:
        return str(self._program)
