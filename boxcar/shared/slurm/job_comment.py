"""By which a job of ours is known in Slurm: its name, and in its comment run, tier and submit.

Another job of this user is never touched, and two projects may have runs of one name.
"""

from __future__ import annotations

import re

from boxcar.shared.disk import digest
from boxcar.shared.record import dataclass

_COMMENT = re.compile(
    r"boxcar run=(?P<run>\S+) tier=(?P<tier>[0-9a-f]{12}) release=(?P<release>[0-9a-f]{64}) "
    r"submit=(?P<token>[0-9a-f]{16})"
)


@dataclass(frozen=True)
class Comment:
    """`tier` stands for the run's folder, `token` for one call of sbatch."""

    run: str
    tier: str
    release: str
    token: str

    def __str__(self) -> str:
        return f"boxcar run={self.run} tier={self.tier} release={self.release} submit={self.token}"


def job_name(run: str) -> str:
    return f"boxcar-{run}"


def tier_id(root: str) -> str:
    """Of the run's folder on the cluster's file system, by its path there."""
    return digest.of_bytes(root.encode("utf-8", "surrogateescape"))[:12]


def read_comment(text: str) -> Comment | None:
    """None where it is not one of ours."""
    found = _COMMENT.fullmatch(text.strip())
    return Comment(**found.groupdict()) if found else None
