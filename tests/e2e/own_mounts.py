"""Small and read-only disks for one test: mounts in a namespace of its own, gone with it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tiny_project import TinyProject


@dataclass(frozen=True)
class OwnMounts:
    """A mount namespace that one sleeping process keeps; nobody else sees its mounts."""

    keeper_pid: int

    def project(self, project: TinyProject) -> TinyProject:
        """The project with its verbs, and all that they start, inside the namespace."""
        words = (*self._enter, f"--wd={project.root}", "--")
        seen = Path(f"/proc/{self.keeper_pid}/root")
        mounts_of = self.keeper_pid if os.geteuid() == 0 else None
        return replace(project, before=words, seen=seen, mounts_of=mounts_of)

    def tmpfs(self, folder: Path, options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._mount("-t", "tmpfs", "-o", options, "none", str(folder))

    def remount(self, folder: Path, options: str) -> None:
        self._mount("-o", f"remount,{options}", str(folder))

    @property
    def _enter(self) -> tuple[str, ...]:
        user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        return ("nsenter", "--target", str(self.keeper_pid), "--mount", *user)

    def _mount(self, *words: str) -> None:
        subprocess.run([*self._enter, "--", "mount", *words], check=True, capture_output=True)


@contextlib.contextmanager
def own_mounts() -> Iterator[OwnMounts]:
    """Skips the test where the machine does not permit it (a container without the right to)."""
    as_root = () if os.geteuid() == 0 else ("--map-root-user",)
    # `echo` says that the namespace is there; `cat` ends when its stdin closes, also by our death.
    command = ["unshare", "--mount", *as_root, "sh", "-c", "echo ready; exec cat"]
    try:
        keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except FileNotFoundError:
        pytest.skip("no `unshare` on this machine: the disks cannot be made small")
    with keeper:
        assert keeper.stdin and keeper.stdout and keeper.stderr
        if keeper.stdout.readline() != b"ready\n":
            pytest.skip(f"no mounts of one's own are permitted: {keeper.stderr.read().decode()}")
        yield OwnMounts(keeper.pid)
        keeper.stdin.close()
