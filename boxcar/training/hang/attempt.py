"""Which start of the job a process belongs to, so that files of an earlier one are not believed."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boxcar.shared import timestamp

_CLOCKS_DIFFER_S = 5.0


@dataclass(frozen=True)
class Attempt:
    """Which start of the job this process belongs to, so that an earlier one's files are not
    believed: they may lie in the same folder, and a retry may have the same port."""

    group: str
    host: str
    """The node: its name in Slurm where it has one, because one host may be several nodes."""
    launcher: int
    since: str

    @classmethod
    def of_this_process(cls, env: Mapping[str, str]) -> Attempt:
        names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
        group = "/".join(env.get(name, "") for name in names)
        # Ranks that somebody started by hand have no parent in common.
        launcher = os.getppid() if env.get("TORCHELASTIC_RUN_ID") else 0
        host = env.get("SLURMD_NODENAME") or socket.gethostname()
        return cls(group, host, launcher, timestamp.utc_now())

    def has(self, group: str, host: str, launcher: int, at: str) -> bool:
        """Whether what these four stand in was written by this start of the job."""
        if group != self.group:
            return False
        if host == self.host and self.launcher:
            return launcher == self.launcher
        # What was written before we began, on another node or without torchrun, is of an earlier
        # start.
        return timestamp.seconds_between(at, self.since) < _CLOCKS_DIFFER_S

    def now(self) -> dict[str, Any]:
        """What a file of this attempt says of its origin."""
        origin = {"group": self.group, "host": self.host, "launcher": self.launcher}
        return {**origin, "pid": os.getpid(), "at": timestamp.utc_now()}
