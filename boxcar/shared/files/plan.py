"""The plan: job, profile and queues, resolved and checked on the laptop. The box reads only this.

It lies in the release, which is immutable; a changed plan is another release.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared import names
from boxcar.shared.artifacts import cadence
from boxcar.shared.cell.duration import GRACE_S
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Cell:
    """One cell of the roster. `nproc` is the number of ranks; None: as many as GPUs, else 1."""

    name: str
    cfg: str
    task: str
    epochs: int
    queue: str
    index: int
    nproc: int | None
    own: Own = field(default=NOTHING_OWN, metadata=codec.LATER)
    overrides: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    nodes: int = field(default=1, metadata=codec.LATER)  # of a cluster; `nproc` is for each
    extra: dict[str, Any] = field(default_factory=dict)


# How an artifact is loaded: so that nothing of it can run; on its box as the script would load it,
# code and all; or not at all.
SAFE, TRUSTED, BYTES_ONLY = "safe", "trusted", "bytes"
# Which matches of a pattern belong to a result.
ALL, NEWEST = "all", "newest"


@dataclass(frozen=True)
class Artifact:
    """What a finished cell must hold, relative to {out}: a file, a folder, or a pattern of either
    (out_pattern.py), of whose matches `take` says which. `keys` must be there when it is loaded.
    """

    path: str
    keys: tuple[str, ...] = ()
    load: str = field(default=SAFE, metadata=codec.LATER)
    take: str = field(default=ALL, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


LOG, CSV, JSON = "log", "csv", "json"


@dataclass(frozen=True)
class Metric:
    """A number to be shown of a cell. `of` is an expression with one group, for a line of the log,
    or a file below {out}; `key` its column, or its key in JSON. `best`: min or max; None: the last.
    """

    name: str
    source: str
    of: str
    key: str | None = None
    best: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OwnSignature:
    """A failure that a person has described: `pattern` is looked for in each line of a log, and
    `course` is the class of what follows, see `triage.course`.
    """

    id: str
    course: str
    pattern: str
    words: str
    todo: str = ""
    waits_s: tuple[float, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """What `cells:` says of the cells that a name or a pattern fits; None: nothing of that key."""

    cells: str
    env: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    launcher: str | None = None
    nproc: int | None = None
    time_s: int | None = None  # of one attempt
    artifacts: tuple[Artifact, ...] | None = None
    resume: str | None = None
    nodes: int | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


# Where the command starts: in the code folder, or in {out}.
IN_CODE, IN_OUT = "code", "out"
# Where the durable tier is: one that all boxes share, or a folder of each box's own.
SHARED, EACH_BOX = "shared", "box"
# In place of an interpreter: the first on the box that is new enough.
AUTO = "auto"
# What a driver and a desktop hold of a GPU that nobody computes on.
GPU_FREE_BELOW_BYTES = 1 << 30
# How long a queue waits for room on a full disk.
FULL_DISK_S = 1800.0
# How long the set-up of a box may take.
SETUP_TIME_S = 3600
# What `install` leaves as it is: the image chose it to suit the box's driver.
HELD_PACKAGES = ("torch", "torchvision", "torchaudio", "numpy")


@dataclass(frozen=True)
class Box:
    """A box and its own places: fast scratch, and the file (mode 600) that holds the secrets.

    As everywhere in a plan, a path of a box is absolute, or begins with `~/`: the box's own home.
    """

    name: str
    data_dir: str
    credentials: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DataUrl:
    """A file on the web that each box fetches itself; {data}/`name` is the folder that holds it, or
    where `unpack` what was in it. `token`: the secret that lets the box in.
    """

    name: str
    url: str
    # Of the file as it comes.
    sha256: str | None = field(default=None, metadata=codec.LATER)
    unpack: bool = field(default=False, metadata=codec.LATER)
    token: str | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IdleEnd:
    """A box that is through with its cells stops itself after `after_s`, by a program (`from_box`,
    words without a shell) or by its own key at this provider; by neither it only tells.
    """

    after_s: int
    from_box: str | None = None
    own_key: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    FORMAT: ClassVar[str] = "plan"
    VERSION: ClassVar[int] = 1

    run: str
    profile: str
    durable_dir: str
    boxes: tuple[Box, ...]
    queues: dict[str, str]  # queue -> box; of a pool its members, see names.py
    cells: tuple[Cell, ...]
    command: tuple[str, ...]  # words, with placeholders
    launcher: str
    nproc: int | None
    cell_nproc: dict[str, int]  # of plans that have no `rules` yet
    epochs: int | None  # where a queue line gives none
    artifacts: tuple[Artifact, ...]
    resume: str | None
    scratch: tuple[str, ...]
    env: dict[str, str]  # the profile's, never filled; of older plans the job's too
    secrets: tuple[str, ...]  # names only
    linger_s: int
    agent_python: str  # or AUTO
    training_python: str
    # Where EACH_BOX, the laptop is where results are safe.
    durable_scope: str = field(default=SHARED, metadata=codec.LATER)
    # From the platform's signal to the end of the box, where it says so.
    grace_s: float = field(default=GRACE_S, metadata=codec.LATER)
    full_disk_s: float = field(default=FULL_DISK_S, metadata=codec.LATER)
    # What the mirror of a live checkpoint may take of the tier beside a training.
    mirror_bytes_per_s: float | None = field(default=None, metadata=codec.LATER)
    # The mean time between interruptions of a box, as long as nobody has counted.
    interrupted_every_s: float = field(default=cadence.PRIOR_S, metadata=codec.LATER)
    # The job's environment, with placeholders.
    job_env: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # What the command gets where there is a checkpoint to resume from; with placeholders.
    resume_args: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    workdir: str = field(default=IN_CODE, metadata=codec.LATER)
    time_s: int | None = field(default=None, metadata=codec.LATER)
    # The fsspec URL to which results and live checkpoints are copied as well.
    second: str | None = field(default=None, metadata=codec.LATER)
    # Exceptions by name or pattern, also for cells that are appended later.
    rules: tuple[Rule, ...] = field(default=(), metadata=codec.LATER)
    metrics: tuple[Metric, ...] = field(default=(), metadata=codec.LATER)
    # Of failures.yaml; they come before Boxcar's own.
    signatures: tuple[OwnSignature, ...] = field(default=(), metadata=codec.LATER)
    # What is carried beside the artifacts, below {out}: paths and patterns as theirs.
    collect: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    # Names below {out} that are links to folders of the code (code_links.py).
    links: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # Cells side by side on one box: how many GPUs each has for itself (None: all of the box), how
    # many at most (None: as many as have GPUs, else one), and whether one that needs fewer GPUs
    # passes one that waits. A GPU of which more memory is in use is not free.
    gpus_per_cell: int | None = field(default=None, metadata=codec.LATER)
    slots: int | None = field(default=None, metadata=codec.LATER)
    backfill: bool = field(default=False, metadata=codec.LATER)
    gpu_free_below_bytes: int = field(default=GPU_FREE_BELOW_BYTES, metadata=codec.LATER)
    # What each box needs before its first cell: a script and a list of packages, by their paths in
    # the code, whether the packages are installed or only looked for, and how long it may take.
    setup: str | None = field(default=None, metadata=codec.LATER)
    requirements: str | None = field(default=None, metadata=codec.LATER)
    install: bool = field(default=False, metadata=codec.LATER)
    setup_time_s: int = field(default=SETUP_TIME_S, metadata=codec.LATER)
    # Whether a cell is ended that stands still, or whose number became no number.
    ends_stalled: bool = field(default=False, metadata=codec.LATER)
    ends_at_nan: bool = field(default=False, metadata=codec.LATER)
    # Names below {data}, each with the digest of its files ('' before a release is built), and
    # whether they lie on the durable tier and not on each box.
    data: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    is_data_on_tier: bool = field(default=False, metadata=codec.LATER)
    data_urls: tuple[DataUrl, ...] = field(default=(), metadata=codec.LATER)
    idle_end: IdleEnd | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def all_rules(self) -> tuple[Rule, ...]:
        return (*self.rules, *(Rule(name, nproc=n) for name, n in self.cell_nproc.items()))

    @cached_property
    def held_terms(self) -> dict[Any, Any]:
        """What `cell.terms` has worked out of it; a run of any size has few."""
        return {}

    def box(self, name: str) -> Box:
        """Raises KeyError for a box that is not in the plan."""
        for box in self.boxes:
            if box.name == name:
                return box
        raise KeyError(name)

    @cached_property
    def boxes_of_files(self) -> dict[str, tuple[str, ...]]:
        """Which boxes work through the queue file of that name: one, or those of a pool."""
        found: dict[str, tuple[str, ...]] = {}
        for queue, box in self.queues.items():
            file = names.file_of(queue)
            found[file] = (*found.get(file, ()), box)
        return found


def unlike(one: Plan, other: Plan, queue: str) -> list[str]:
    """In which of the things that the queue's agent was started with, and cannot change, they
    differ. Other boxes may come and go.
    """
    fields = ("run", "durable_dir", "durable_scope", "launcher")
    found = [name for name in fields if getattr(one, name) != getattr(other, name)]
    box = one.queues.get(queue)
    if box is None or other.queues.get(queue) != box:
        return [*found, "queues"]
    is_same = [b for b in one.boxes if b.name == box] == [b for b in other.boxes if b.name == box]
    return found if is_same else [*found, "boxes"]


def read_plan(path: Path) -> Plan:
    """Raises FileNotFoundError, or DamagedError for a file that is no plan."""
    return parse_plan(path.read_bytes(), str(path))


def parse_plan(data: bytes, where: str) -> Plan:
    return codec.from_document(Plan, data, where)
