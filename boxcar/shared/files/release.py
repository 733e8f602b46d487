"""The release: everything that a run executes, named by its content and never changed.

`release.json` lists every file of `releases/<digest>/` beside itself; the digest is that of the
list. The laptop writes a release once; each agent checks it before it starts.
"""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.disk import digest
from boxcar.shared.errors import Command, DamagedError
from boxcar.shared.files import codec, manifest, plan
from boxcar.shared.files.manifest import Difference, FileRecord
from boxcar.shared.files.plan import Plan
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Which releases were pushed to a durable tier, the newest last. A push has its box write it.
#
# Digests have no order. An agent whose own release lacks the config of a line looks here.


_MOST_KEPT = 100


@dataclass(frozen=True)
class Newest:
    FORMAT: ClassVar[str] = "newest"
    VERSION: ClassVar[int] = 1

    releases: tuple[str, ...]
    at: str
    extra: dict[str, Any] = field(default_factory=dict)


def releases(path: Path) -> tuple[str, ...]:
    """The digests, the newest last; none before the first push. Raises DamagedError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    return codec.from_document(Newest, data, str(path)).releases


def with_newest(before: tuple[str, ...], digest: str) -> tuple[str, ...]:
    """One that is pushed again is the newest again."""
    return (*(other for other in before if other != digest), digest)[-_MOST_KEPT:]


FILE = "release.json"
PLAN = "plan.json"
CODE = "code"
RUN_QUEUE = "run_queue.sh"
RUN_ONE = "run_one.sh"
# On a cluster: the batch script, or one for each group of queues with the same options.
RUN_SLURM = "run_slurm.sh"


@dataclass(frozen=True)
class Code:
    """Where the user's code came from. `commit` is None outside git, `diff` a file's name."""

    commit: str | None
    is_dirty: bool
    diff: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Release:
    FORMAT: ClassVar[str] = "release"
    VERSION: ClassVar[int] = 1

    run: str
    onbox: str  # file name of the agent's zipapp
    training: str  # file name of what a train script may import
    code: Code
    files: tuple[FileRecord, ...]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The release's name: twelve characters would do for people, files carry all 64."""
        return digest.of_json(codec.encode(self))


def read_release(folder: Path) -> Release:
    """The release in `folder`. Raises DamagedError where it is not the one its name says."""
    path = folder / FILE
    release = codec.from_document(Release, path.read_bytes(), str(path))
    if release.digest != folder.name:
        problem = _(
            "{path}: has digest {found}, expected {wanted}",
            path=path,
            found=release.digest,
            wanted=folder.name,
        )
        raise DamagedError(problem, Command("repair"))
    return release


def read_plan(folder: Path) -> Plan:
    """The release's plan, where it is the one that the release's digest stands for.

    Raises FileNotFoundError, or DamagedError.
    """
    path = folder / PLAN
    listed = [file for file in read_release(folder).files if file.path == PLAN]
    data = path.read_bytes()
    if [digest.of_bytes(data)] != [file.sha256 for file in listed]:
        raise DamagedError(_("{path}: is not as it was pushed", path=path), Command("repair"))
    return plan.parse_plan(data, str(path))


def check(folder: Path) -> list[Difference]:
    """Every file of the release that is not as it was pushed."""
    return manifest.compare(folder, read_release(folder).files)


def is_unfinished(name: str, digest: str) -> bool:
    """Whether a release of this digest is sent under this name, as atomic.temporary_name makes it.

    No other entry of that folder is ever renamed or removed.
    """
    return re.fullmatch(rf"\.{digest}\.[0-9a-f]{{8}}\.part", name) is not None
