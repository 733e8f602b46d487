"""Every question that the laptop asks of a box, and every answer: the one description of both.

A question's class names its answer's class, so who asks gets the right type, and spells the name
that travels. How both become JSON is envelope.py's. Long, so that a reader who changes one side has
the other before their eyes: it grows by a pair of records with each question, and by nothing else.
"""

from __future__ import annotations

import typing
from dataclasses import field
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from boxcar.shared import paths
from boxcar.shared.cell.cell_name import CELL_NAME
from boxcar.shared.files.accepted import Accepted
from boxcar.shared.files.cell_claim import Claim
from boxcar.shared.files.control import Control
from boxcar.shared.files.release import is_unfinished
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.slurm.seen_jobs import Task
from boxcar.shared.wire.facts import Facts
from boxcar.shared.wire.fields import (
    SILENT,
    ArrayIndex,
    BoxName,
    BoxPath,
    CellName,
    Count,
    Digest,
    Prefix,
    QueueName,
    RunName,
    ScriptName,
    Time,
    Token,
    one_of,
)

A = TypeVar("A")

# What keeps an agent running without us, and what is answered where one runs already.
TMUX, SETSID, RUNNING = "tmux", "setsid", "running"
DETACH_WAYS = (TMUX, SETSID)


class Question(Generic[A]):
    """`class Start(Question[Started], name="start")`: the name that travels, and the answer."""

    NAME: ClassVar[str]
    ANSWER: ClassVar[type[Any]]

    def __init_subclass__(cls, name: str) -> None:
        super().__init_subclass__()
        cls.NAME = name
        cls.ANSWER = typing.get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]

    def check(self, answer: A) -> None:
        """Raise ValueError for an answer that is well formed, but none to this question."""


@dataclass(frozen=True)
class RunOnBox:
    """Which run is meant, and where it lies on the box that is asked: in every question."""

    run: RunName
    durable_dir: BoxPath
    data_dir: BoxPath

    @property
    def tier(self) -> DurablePaths:
        return DurablePaths(paths.on_box(self.durable_dir), self.run)

    @property
    def scratch(self) -> ScratchPaths:
        return ScratchPaths(paths.on_box(self.data_dir), self.run)


# --- what lives there, and the run's small files


@dataclass(frozen=True)
class FilePart:
    """What the laptop lacks of a file: `data`, from `offset` on. The rest is of the whole file.

    It goes at `offset` of what the laptop has, or makes the file anew from 0.
    """

    path: str
    offset: Count
    data: bytes
    size_bytes: Count
    sha256: Digest


@dataclass(frozen=True)
class Reported:
    """What lives, and the control files that the laptop lacks. Times are the box's clock.

    `agents` says whether a queue's lock is held: of the queues that were asked about, and of every
    other that has a lock on the tier, since its agent may run here from an earlier plan; null where
    the tier is not there. `attempts` are the cells whose log is held here, `progress_at` when each
    of these last wrote its progress. `gone` are names of `have` that are no more. `is_more`: ask
    again, this was too much for one answer. `lingering`: the queues of which somebody delivers
    news, whether an agent runs or not. `unread`: control files that the box could not read, and
    why.
    """

    at: Time
    boot_id: str
    is_tier_there: bool
    agents: dict[str, bool | None]
    attempts: tuple[str, ...]
    progress_at: dict[str, Time]
    files: tuple[FilePart, ...]
    gone: tuple[str, ...]
    is_more: bool
    gauges: dict[str, int]
    lingering: tuple[str, ...] | None = field(default=None, metadata=SILENT)
    unread: dict[str, str] | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class Report(Question[Reported], name="report"):
    """`queues` are those of the box. With `everything` it tells the files of all queues, cells and
    releases, not only those of `queues`. `have`: what the laptop has, by path below the run's root.
    """

    queues: tuple[QueueName, ...]
    everything: bool
    have: dict[str, Prefix]


# --- a release


@dataclass(frozen=True)
class FoundRelease:
    """`problems` are sentences; none where it is there as it was pushed."""

    is_there: bool
    problems: tuple[str, ...]
    is_newest: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class FindRelease(Question[FoundRelease], name="release"):
    digest: Digest


@dataclass(frozen=True)
class Prepared:
    """`kept` is the unfinished folder of this release to continue in, if there is one."""

    kept: str | None


@dataclass(frozen=True)
class Prepare(Question[Prepared], name="prepare"):
    """`is_mounted`: the tier is a mount, and is not made where it is missing."""

    digest: Digest
    sizes_bytes: tuple[Count, ...]
    is_mounted: bool

    def check(self, answer: Prepared) -> None:
        if answer.kept is not None and not is_unfinished(answer.kept, self.digest):
            raise ValueError("kept: expected the name of this release, unfinished")


@dataclass(frozen=True)
class Installed:
    is_new: bool


@dataclass(frozen=True)
class Install(Question[Installed], name="install"):
    """Give what was sent as `unfinished` its name."""

    digest: Digest
    unfinished: str

    def __post_init__(self) -> None:
        if not is_unfinished(self.unfinished, self.digest):
            raise ValueError(
                f"unfinished: {self.unfinished!r} is not the name of an unfinished {self.digest}"
            )


@dataclass(frozen=True)
class Pointed:
    pass


@dataclass(frozen=True)
class PointTo(Question[Pointed], name="newest"):
    """From now on this is the newest release of the tier. It is there already."""

    digest: Digest


# --- a queue


@dataclass(frozen=True)
class Appended:
    """Of the whole file afterwards."""

    size_bytes: Count
    sha256: Digest


@dataclass(frozen=True)
class Append(Question[Appended], name="append"):
    """`expected` is what the laptop has read of the queue file; null where it was not there."""

    queue: QueueName
    expected: Prefix | None
    data: bytes


@dataclass(frozen=True)
class CommentOut(Question[Appended], name="comment_out"):
    """`data` is the whole queue file, in which lines of what the laptop has read (`expected`) have
    a `#`; others may follow.
    """

    queue: QueueName
    expected: Prefix
    data: bytes


@dataclass(frozen=True)
class ControlWritten:
    pass


@dataclass(frozen=True)
class WriteControl(Question[ControlWritten], name="control"):
    """`document` has the fields of a control file."""

    queue: QueueName
    document: Control


@dataclass(frozen=True)
class Started:
    """`by` is tmux, setsid or running; `pid` is that of the agent, null where nobody says it."""

    by: Annotated[str, one_of(*DETACH_WAYS, RUNNING)]
    pid: int | None


@dataclass(frozen=True)
class Start(Question[Started], name="start"):
    """`detach` says what may keep it running, in the order of preference. `start_cell` is what
    `start_index` meant when it was typed: it stays right when lines above are commented out.
    """

    queue: QueueName
    digest: Digest
    start_index: Count
    detach: tuple[Annotated[str, one_of(*DETACH_WAYS)], ...]
    start_cell: CellName | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class Delivered:
    """How many events are still due."""

    left: Count


@dataclass(frozen=True)
class Deliver(Question[Delivered], name="deliver"):
    """`credentials` is the path of that file, here and below."""

    queue: QueueName
    digest: Digest
    credentials: BoxPath


# What is said of one message: the service has it, says no, or may take it another time.
TAKEN, REFUSED, LATER = "taken", "refused", "later"


@dataclass(frozen=True)
class Address:
    """An endpoint of news, of `channels` or a webhook: all of it is as secret as a password."""

    channel: str
    url: str = field(repr=False)
    secret: str = field(repr=False)
    to: str = field(repr=False)


@dataclass(frozen=True)
class Posted:
    """What came of one message. `said` is the service's own answer, or why there was none, cut and
    without a secret; `status` null where nothing answered. `ahead_s`: how far the clock of who
    posted is ahead of the service's, where its answer says the time.
    """

    verdict: Annotated[str, one_of(TAKEN, REFUSED, LATER)]
    said: str
    status: int | None = field(default=None, metadata=SILENT)
    ahead_s: int | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class OneEvent:
    """An event of a journal, as a webhook gets it."""

    id: str
    at: Time
    type: str
    data: dict[str, Any]


@dataclass(frozen=True)
class NewsPosted:
    """In the order of the endpoints."""

    posted: tuple[Posted, ...]


@dataclass(frozen=True)
class PostNews(Question[NewsPosted], name="post_news"):
    """Post `text` to each of these once, now, and keep nothing of it. An endpoint of the channel
    `webhook` gets `event`, or without one the text in an event of its own. `hook` is the profile's
    shell text, whose proxies are used; without one those of the process.
    """

    endpoints: tuple[Address, ...]
    text: str
    hook: str
    event: OneEvent | None = field(default=None, metadata=SILENT)

    def check(self, answer: NewsPosted) -> None:
        if len(answer.posted) != len(self.endpoints):
            raise ValueError(f"posted: expected {len(self.endpoints)} of them")


# Why a host was not reached: nobody knows its name, nothing listens, no answer in time, a cut
# connection, TLS of somebody else, a proxy that lets nothing through, or no way there.
NO_NAME, CLOSED, NO_ANSWER, CUT = "no_name", "closed", "no_answer", "cut"
WRONG_TLS, BY_PROXY, NO_WAY = "wrong_tls", "by_proxy", "no_way"
AWAY = (NO_NAME, CLOSED, NO_ANSWER, CUT, WRONG_TLS, BY_PROXY, NO_WAY)


@dataclass(frozen=True)
class Host:
    """Where messages go, without the path of the address, which is secret."""

    name: str
    port: Count
    is_tls: bool


@dataclass(frozen=True)
class HostTried:
    """`problem` is null where a connection, and TLS in it, came to stand."""

    problem: Annotated[str, one_of(*AWAY)] | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class HostsTried:
    """In the order of the hosts."""

    tried: tuple[HostTried, ...]


@dataclass(frozen=True)
class TryHosts(Question[HostsTried], name="try_hosts"):
    """Connect to each as a message would, and send nothing. `hook` is the profile's shell text,
    whose proxies are used.
    """

    hosts: tuple[Host, ...]
    hook: str

    def check(self, answer: HostsTried) -> None:
        if len(answer.tried) != len(self.hosts):
            raise ValueError(f"tried: expected {len(self.hosts)} of them")


# --- a cell


@dataclass(frozen=True)
class ClaimMoved:
    """False where it was so already."""

    is_new: bool


@dataclass(frozen=True)
class MoveClaim(Question[ClaimMoved], name="move"):
    """Put `claim` in the place of the one of `queue_before`. `is_told`: this tier is that box's
    alone, and somebody else owns the cell by now, whatever its agent is doing.
    """

    claim: Claim
    queue_before: QueueName
    is_told: bool

    def __post_init__(self) -> None:
        if not CELL_NAME.fullmatch(self.claim.cell):
            raise ValueError(f"claim: {self.claim.cell!r} cannot be a cell's name")


# --- a checkpoint


@dataclass(frozen=True)
class CheckpointTaken:
    """`is_lacking`: it would be taken, but its file is not there whole. Neither: it is not needed,
    because the queue has tried the cell, or has a checkpoint of its own.
    """

    is_taken: bool
    is_lacking: bool


@dataclass(frozen=True)
class TakeCheckpoint(Question[CheckpointTaken], name="checkpoint"):
    """Whether the next attempt of `queue` at the cell may continue from what `pointer` names."""

    queue: QueueName
    cell: CellName
    pointer: Resume


# --- results that the laptop has and a box that was rented anew has lost


@dataclass(frozen=True)
class ResultsKnown:
    """`unknown`: the box has neither a result nor an attempt of these. `bare`: of these it has the
    manifest, and not all files. `verified`: nothing is to be done for these.
    """

    unknown: tuple[CellName, ...]
    bare: tuple[CellName, ...]
    verified: tuple[CellName, ...]


@dataclass(frozen=True)
class KnowResults(Question[ResultsKnown], name="know_results"):
    """What the box has of the results of `cells`, which are those of `queue`."""

    queue: QueueName
    cells: tuple[CellName, ...]


@dataclass(frozen=True)
class LentResult:
    """`manifest` and `receipt` are the bytes of these files; None where there is no receipt.

    `has_files`: its files were sent to the folder for what is lent, and are to be put in place.
    """

    document: Accepted
    claim: Claim
    manifest: bytes
    receipt: bytes | None
    has_files: bool

    def __post_init__(self) -> None:
        cell = self.document.cell
        if not CELL_NAME.fullmatch(cell) or self.claim.cell != cell:
            raise ValueError(
                f"document: {cell!r} cannot be a cell's name, or the claim is another's"
            )


@dataclass(frozen=True)
class ResultsTaken:
    """`lacking`: the first of its files that is not there as the manifest says, by cell; the others
    were taken.
    """

    lacking: dict[CellName, str]


@dataclass(frozen=True)
class TakeResults(Question[ResultsTaken], name="take_results"):
    queue: QueueName
    results: tuple[LentResult, ...]


# --- what the laptop has proven


@dataclass(frozen=True)
class AcceptanceKept:
    """False where it was kept already."""

    is_new: bool


@dataclass(frozen=True)
class Accept(Question[AcceptanceKept], name="accept"):
    """`document` has the fields of an accepted file."""

    document: Accepted

    def __post_init__(self) -> None:
        if not CELL_NAME.fullmatch(self.document.cell):
            raise ValueError(f"document: {self.document.cell!r} cannot be a cell's name")


# --- what is damaged


@dataclass(frozen=True)
class Damage:
    """A file of the run that is not as it was written; `path` is below the run's folder.

    `source` says what proves what it was, null where nothing does. `aside` is the name of the
    damaged file beside it, once it `is_put_back`.
    """

    path: str
    problem: str
    source: str | None
    aside: str | None
    is_put_back: bool


@dataclass(frozen=True)
class Repaired:
    damages: tuple[Damage, ...]


@dataclass(frozen=True)
class Repair(Question[Repaired], name="repair"):
    """`copies` is what the laptop has of these files, by path; they are believed where something on
    the tier proves them. Without `is_to_write` nothing is changed.
    """

    copies: dict[str, tuple[bytes, ...]]
    is_to_write: bool


# --- a log


@dataclass(frozen=True)
class LogSlice:
    """`offset` is where the next slice begins. `is_held`: somebody lives who may write to it."""

    is_there: bool
    data: bytes
    offset: Count
    size_bytes: Count
    is_held: bool


@dataclass(frozen=True)
class ReadLog(Question[LogSlice], name="log"):
    """The log of `cell`, or what the agent of `queue` printed.

    What stands behind `offset`; without one the last `lines` complete lines with what is unfinished
    after them.
    """

    offset: Count | None
    lines: Count
    most_bytes: Count
    cell: CellName | None = field(default=None, metadata=SILENT)
    queue: QueueName | None = field(default=None, metadata=SILENT)

    def __post_init__(self) -> None:
        if (self.cell is None) == (self.queue is None):
            raise ValueError("expected the name of a cell or of a queue, and not both")


# --- other runs on the box


@dataclass(frozen=True)
class OtherRun:
    """A run on this box that is not the one that asks: its `queues` and `cells` that are at work.

    `devices` are the GPUs that these may see, null where they see all or nobody can tell. `results`
    are its cells on a tier that goes with the box: the digest of its manifest, null where the cell
    was begun and not published.
    """

    run: RunName
    queues: tuple[str, ...]
    cells: tuple[str, ...]
    results: dict[CellName, Digest | None]
    devices: tuple[str, ...] | None = field(default=None, metadata=SILENT)

    @property
    def is_at_work(self) -> bool:
        return bool(self.queues or self.cells)


@dataclass(frozen=True)
class Stranger:
    """A program on the box's GPUs that is no run's; `user` as the box names it, `devices` the GPUs
    that it may see, null where that is all or nobody can tell.
    """

    pid: Count
    program: str
    user: str
    devices: tuple[str, ...] | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class OthersSeen:
    runs: tuple[OtherRun, ...]
    strangers: tuple[Stranger, ...]


@dataclass(frozen=True)
class SeeOthers(Question[OthersSeen], name="others"):
    """`stays`: of each tier's folder whether it stays when the box goes, as nothing else does; null
    where no results are to be told.
    """

    stays: dict[BoxPath, bool] | None = field(default=None, metadata=SILENT)


# --- secrets, and the end


@dataclass(frozen=True)
class CredentialsKept:
    """The names of the secrets, never a value."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class KeepCredentials(Question[CredentialsKept], name="credentials"):
    path: BoxPath
    record: dict[str, Any] = field(repr=False)  # its values are secrets


@dataclass(frozen=True)
class AtWork:
    """The agent of a queue, or the attempt at a cell; of another run where that is named."""

    queue: str | None = field(default=None, metadata=SILENT)
    cell: str | None = field(default=None, metadata=SILENT)
    run: str | None = field(default=None, metadata=SILENT)

    def __post_init__(self) -> None:
        if (self.cell is None) == (self.queue is None):
            raise ValueError("expected a cell or a queue, and not both")


@dataclass(frozen=True)
class Ended:
    """What is at work, and so nothing was removed; empty where it is done."""

    alive: tuple[AtWork, ...]


@dataclass(frozen=True)
class End(Question[Ended], name="end"):
    """`beside`: the other runs at work that a person knows of; null where none is looked for,
    because the box goes on.
    """

    queues: tuple[QueueName, ...]
    credentials: BoxPath
    beside: tuple[RunName, ...] | None = field(default=None, metadata=SILENT)


# --- before a launch


@dataclass(frozen=True)
class Audit(Question[Facts], name="audit"):
    """`hook` is the profile's shell text, which runs before the training's Python is asked."""

    credentials: BoxPath
    training_python: str
    hook: str


@dataclass(frozen=True)
class TierProbed:
    """What the step asks for, or the `problem` that it met. `files` has null for one that this box
    does not see; `owner` is null where nobody has claimed.
    """

    problem: str | None = field(default=None, metadata=SILENT)
    sha256: Digest | None = field(default=None, metadata=SILENT)
    files: dict[str, Digest | None] | None = field(default=None, metadata=SILENT)
    has_won: bool | None = field(default=None, metadata=SILENT)
    owner: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class TierProbe(Question[TierProbed], name="tier_probe"):
    """One step of the trial whether the durable tier is one place for all boxes.

    write: a file of the box `name`; read: those of `names`; claim: for `name`; owner; clean.
    """

    step: Annotated[str, one_of("write", "read", "claim", "owner", "clean")]
    token: Token
    name: BoxName
    names: tuple[BoxName, ...] = ()

    def check(self, answer: TierProbed) -> None:
        wanted = {"write": "sha256", "read": "files", "claim": "has_won"}.get(self.step)
        if answer.problem is not None or wanted is None:
            return
        if getattr(answer, wanted) is None:
            raise ValueError(f"the field {wanted!r} is missing")
        if self.step == "read" and set(answer.files or ()) != set(self.names):
            raise ValueError(f"files: expected those of {', '.join(self.names)}")


@dataclass(frozen=True)
class SecondHomeTried:
    """`problem` is a sentence without a secret; null where all went well."""

    problem: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class TrySecondHome(Question[SecondHomeTried], name="second_home"):
    """Write, read back and remove one small file at `url`, as the agent would copy there.

    `program` is the text of `boxcar/training/second_home.py`: there may be no release yet. `env`
    are the variables of platform and job.
    """

    url: str
    training_python: str
    hook: str
    program: str = field(repr=False)
    env: dict[str, str]
    secrets: dict[str, str] = field(repr=False)


# --- a cluster


@dataclass(frozen=True)
class SlurmLooked:
    """When squeue was asked, and what it said; nothing is known where there is a `problem`."""

    at: Time
    tasks: tuple[Task, ...]
    problem: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class SlurmLook(Question[SlurmLooked], name="slurm_look"):
    """Which jobs of the run Slurm has; as of a moment ago, where somebody has asked then and
    `is_exact` does not ask for more.
    """

    is_exact: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class SlurmSubmitted:
    """`job` is the array's number, null where all queues were there already (`left_alone`)."""

    job: str | None
    queues: tuple[QueueName, ...]
    left_alone: tuple[QueueName, ...]


@dataclass(frozen=True)
class Begin:
    """Where a queue begins, as in `Start`."""

    queue: QueueName
    start_index: Count
    start_cell: CellName | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class SlurmSubmit(Question[SlurmSubmitted], name="slurm_submit"):
    """Submit the batch script `script` of the release for these queues, by their index as text.
    `most_lead_s` is how long before its time limit a queue is asked to leave at most.
    """

    digest: Digest
    script: ScriptName
    queues: dict[ArrayIndex, QueueName]
    begins: tuple[Begin, ...]
    most_lead_s: Count | None = field(default=None, metadata=SILENT)
    # Of one queue: a task for each cell that is open, one at a time.
    is_per_cell: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class SlurmCancelled:
    """The tasks that were there."""

    tasks: tuple[str, ...]


@dataclass(frozen=True)
class SlurmCancel(Question[SlurmCancelled], name="slurm_cancel"):
    """End all jobs of the run; where `waiting_of` names queues, only what waits of these."""

    waiting_of: tuple[QueueName, ...] = field(default=(), metadata=SILENT)


@dataclass(frozen=True)
class SlurmFacts:
    """`partitions`: of each what scontrol says of it, `defaults` those that nobody has to name.
    `refusals`: script → what sbatch has against its options. Problems are sentences.
    """

    version: str
    max_array_size: int | None
    partitions: dict[str, dict[str, str]]
    defaults: tuple[str, ...]
    refusals: dict[str, str]
    tier_problem: str | None
    credentials_problem: str | None


@dataclass(frozen=True)
class SlurmAudit(Question[SlurmFacts], name="slurm_audit"):
    """`jobs`: script → the options of sbatch that it will be submitted with."""

    credentials: BoxPath
    jobs: dict[ScriptName, tuple[str, ...]]


@dataclass(frozen=True)
class SlurmTried:
    """What the nodes have that ran it, the least of each; nothing, and a `problem`, where none was
    free. `silent` were free, and their Python said nothing: `problem` has why. `flock` is `works`,
    `fails` or `lies`, null where only one node was free; `hook_problem` what a hook said that
    failed.
    """

    nodes: tuple[str, ...]
    python: str
    gpus: int
    shm_free_bytes: int | None
    is_one_winner: bool
    flock: str | None
    problem: str | None
    silent: tuple[str, ...] = field(default=(), metadata=SILENT)
    hook_problem: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class SlurmTry(Question[SlurmTried], name="slurm_try"):
    """Try by a short srun what nodes are like that these `options` of sbatch lead to, in the
    `container` if there are words for one.
    """

    options: tuple[str, ...]
    python: str
    hook: str
    container: tuple[str, ...] = field(default=(), metadata=SILENT)


QUESTIONS: dict[str, type[Question[Any]]] = {
    question.NAME: question
    for question in (
        *(Report, FindRelease, Prepare, Install, PointTo, Append, CommentOut, WriteControl, Start),
        *(Deliver, MoveClaim, TakeCheckpoint, ReadLog, KeepCredentials, SeeOthers, End, Audit),
        *(TierProbe, Repair, Accept, KnowResults, TakeResults, TrySecondHome, PostNews, TryHosts),
        *(SlurmLook, SlurmSubmit, SlurmCancel, SlurmAudit, SlurmTry),
    )
}
