"""What a box is and has, as it tells it for `audit`: facts, which only the laptop judges.

A fact that cannot be had is left out, or is a `problem` in words.
"""

from __future__ import annotations

from dataclasses import field

from boxcar.shared.record import dataclass
from boxcar.shared.wire.question import SILENT, Count, Time


@dataclass(frozen=True)
class Gpu:
    """`mig`: the UUIDs of the slices that a card was divided into, each a GPU to a cell. `xid`: the
    last error that the driver has reported of it by number.
    """

    name: str | None = field(default=None, metadata=SILENT)
    utilization_percent: int | None = field(default=None, metadata=SILENT)
    memory_used_bytes: Count | None = field(default=None, metadata=SILENT)
    memory_total_bytes: Count | None = field(default=None, metadata=SILENT)
    temperature_c: int | None = field(default=None, metadata=SILENT)
    slowed_by: tuple[str, ...] = field(default=(), metadata=SILENT)
    ecc_errors: Count | None = field(default=None, metadata=SILENT)
    retired_rows: Count | None = field(default=None, metadata=SILENT)
    xid: Count | None = field(default=None, metadata=SILENT)
    driver: str | None = field(default=None, metadata=SILENT)
    problem: str | None = field(default=None, metadata=SILENT)
    mig: tuple[str, ...] = field(default=(), metadata=SILENT)


@dataclass(frozen=True)
class Folder:
    """A folder, and the file system that it lies on, or will lie on once it is made."""

    path: str
    is_there: bool
    is_writable: bool
    size_bytes: Count | None = field(default=None, metadata=SILENT)
    free_bytes: Count | None = field(default=None, metadata=SILENT)
    inodes: Count | None = field(default=None, metadata=SILENT)
    free_inodes: Count | None = field(default=None, metadata=SILENT)
    device: int | None = field(default=None, metadata=SILENT)
    mount: str | None = field(default=None, metadata=SILENT)
    file_system: str | None = field(default=None, metadata=SILENT)
    problem: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class Folders:
    """`credentials` is the folder in which that file lies."""

    data: Folder
    durable: Folder
    credentials: Folder


@dataclass(frozen=True)
class TrainingPython:
    """The training's interpreter. `packages` has null for one that is not installed, and so have
    `requirements`, which are those that were asked about; `cuda` is what torch was built for, as
    `built_for` spells it (sm_90, compute_90); `capabilities` are those of the cards (9.0).
    """

    path: str | None = field(default=None, metadata=SILENT)
    version: str | None = field(default=None, metadata=SILENT)
    packages: dict[str, str | None] = field(default_factory=dict, metadata=SILENT)
    problem: str | None = field(default=None, metadata=SILENT)
    has_cuda: bool | None = field(default=None, metadata=SILENT)
    cuda: str | None = field(default=None, metadata=SILENT)
    cuda_problem: str | None = field(default=None, metadata=SILENT)
    built_for: tuple[str, ...] = field(default=(), metadata=SILENT)
    capabilities: tuple[str, ...] = field(default=(), metadata=SILENT)
    requirements: dict[str, str | None] = field(default_factory=dict, metadata=SILENT)


@dataclass(frozen=True)
class Mirror:
    """A mirror that a training would use, by the variable that names it; `problem`: why it is dead,
    null where it answers with what was asked. No password of the `url` is in it.
    """

    name: str
    url: str
    problem: str | None


@dataclass(frozen=True)
class HasRun:
    """Whether something of the run is there already."""

    data: bool
    durable: bool


@dataclass(frozen=True)
class Facts:
    """`tools` has null for a program that is not there; `bash` is the version of the one that is
    found, and `at` this box's clock. `hostname_problem` says why the name has no address here.
    """

    at: Time
    hostname: str
    boot_id: str
    user: str
    cpu_count: Count
    gpus: tuple[Gpu, ...]
    places: Folders
    training: TrainingPython
    tools: dict[str, str | None]
    bash: str | None
    has_run: HasRun
    hostname_problem: str | None = field(default=None, metadata=SILENT)
    memory_used_bytes: Count | None = field(default=None, metadata=SILENT)
    memory_limit_bytes: Count | None = field(default=None, metadata=SILENT)
    memory_total_bytes: Count | None = field(default=None, metadata=SILENT)
    shm_size_bytes: Count | None = field(default=None, metadata=SILENT)
    shm_free_bytes: Count | None = field(default=None, metadata=SILENT)
    cpu_quota_cores: float | None = field(default=None, metadata=SILENT)
    processes: Count | None = field(default=None, metadata=SILENT)
    processes_limit: Count | None = field(default=None, metadata=SILENT)
    mirrors: tuple[Mirror, ...] = field(default=(), metadata=SILENT)

    @property
    def gpus_for_cells(self) -> int:
        """How many a box gives out: of a card that is divided its slices."""
        return sum(len(gpu.mig) or 1 for gpu in self.gpus if gpu.problem is None)
