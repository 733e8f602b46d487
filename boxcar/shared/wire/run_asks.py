"""What is asked of a run on a box: its files, release, queues, cells, results and logs."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Annotated

from boxcar.shared.cell.cell_name import CELL_NAME
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.control import Control
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.files.release import is_unfinished
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.question import (
    SILENT,
    BoxPath,
    CellName,
    Count,
    Digest,
    Prefix,
    Question,
    QueueName,
    Time,
    Token,
    one_of,
)

# What keeps an agent running without us, and what is answered where one runs already.
TMUX, SETSID, RUNNING = "tmux", "setsid", "running"
DETACH_WAYS = (TMUX, SETSID)


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
    of these last wrote its progress, `written` those whose log holds something. `gone` are names of
    `have` that are no more. `is_more`: ask again, this was too much for one answer. `unread`:
    control files that the box could not read, and why. `mark` is what `Wait` wants.
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
    unread: dict[str, str] | None = field(default=None, metadata=SILENT)
    written: tuple[str, ...] = field(default=(), metadata=SILENT)
    mark: Token | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class Report(Question[Reported], name="report"):
    """`queues` are those of the box. With `everything` it tells the files of all queues, cells and
    releases, not only those of `queues`. `have`: what the laptop has, by path below the run's root.
    """

    queues: tuple[QueueName, ...]
    everything: bool
    have: dict[str, Prefix]


@dataclass(frozen=True)
class Waited:
    """False: nothing has changed within the time."""

    has_news: bool


@dataclass(frozen=True)
class Wait(Question[Waited], name="wait"):
    """Is answered as soon as a report would tell other than the one of this `mark`, of the same
    queues, or after `most_s`. What changes all the time, such as a heartbeat, is no news.
    """

    queues: tuple[QueueName, ...]
    mark: Token
    most_s: Count


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


def is_base(name: str) -> bool:
    """Whether the name may stand in rsync's words, which a shell on the box reads."""
    return re.fullmatch(r"\.\./[0-9a-f]{64}|(/(?!\.\.?(?:/|$))[A-Za-z0-9._-]+)+", name) is not None


@dataclass(frozen=True)
class Prepared:
    """`kept` is the unfinished folder of this release to continue in, if there is one.

    `bases` are folders from which what did not change can be copied there: the newest release,
    relative to the new one, and where the agent's file was sent to for questions.
    """

    kept: str | None
    bases: tuple[str, ...] = field(default=(), metadata=SILENT)


@dataclass(frozen=True)
class Prepare(Question[Prepared], name="prepare"):
    """`is_mounted`: the tier is a mount, and is not made where it is missing."""

    digest: Digest
    sizes_bytes: tuple[Count, ...]
    is_mounted: bool

    def check(self, answer: Prepared) -> None:
        if answer.kept is not None and not is_unfinished(answer.kept, self.digest):
            raise ValueError(_("kept: expected the name of this release, unfinished"))
        if not all(is_base(one) for one in answer.bases):
            raise ValueError(_("bases: expected releases and plain absolute paths"))


@dataclass(frozen=True)
class CopiedThere:
    """Which of the files are in the unfinished release, as they are to be."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class CopyUnchanged(Question[CopiedThere], name="copy_unchanged"):
    """Where the box has no rsync: have what a base holds alike in the unfinished release."""

    digest: Digest
    unfinished: str
    files: tuple[FileRecord, ...]

    def __post_init__(self) -> None:
        _check_unfinished(self.unfinished, self.digest)


@dataclass(frozen=True)
class Installed:
    is_new: bool


@dataclass(frozen=True)
class Install(Question[Installed], name="install"):
    """Give what was sent as `unfinished` its name."""

    digest: Digest
    unfinished: str

    def __post_init__(self) -> None:
        _check_unfinished(self.unfinished, self.digest)


def _check_unfinished(name: str, digest: str) -> None:
    if not is_unfinished(name, digest):
        raise ValueError(
            _(
                "unfinished: {unfinished!r} is not the name of an unfinished {digest}",
                unfinished=name,
                digest=digest,
            )
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
    """`document` has the fields of a control file. `is_limit`: only its `begin_until` is written,
    and what a person wants stays.
    """

    queue: QueueName
    document: Control
    is_limit: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class Started:
    """`by` is tmux, setsid or running; `pid` is that of the agent, null where nobody says it."""

    by: Annotated[str, one_of(*DETACH_WAYS, RUNNING)]
    pid: int | None


@dataclass(frozen=True)
class Start(Question[Started], name="start"):
    """`detach` says what may keep it running, in the order of preference. `start_cell` is what
    `start_index` meant when it was typed: it stays right when lines above are commented out.
    `sets_up_again`: the box's set-up is done anew, where this starts the agent.
    """

    queue: QueueName
    digest: Digest
    start_index: Count
    detach: tuple[Annotated[str, one_of(*DETACH_WAYS)], ...]
    start_cell: CellName | None = field(default=None, metadata=SILENT)
    sets_up_again: bool = field(default=False, metadata=SILENT)


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
            raise ValueError(_("claim: {cell!r} cannot be a cell's name", cell=self.claim.cell))


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
                _(
                    "document: {cell!r} cannot be a cell's name, or the claim is another's",
                    cell=cell,
                )
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
            raise ValueError(
                _("document: {cell!r} cannot be a cell's name", cell=self.document.cell)
            )


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
    """`offset` is where the next slice begins. `is_held`: somebody lives who may write to it.
    `is_clean`: the box read its credentials, and their values are left out.
    """

    is_there: bool
    data: bytes
    offset: Count
    size_bytes: Count
    is_held: bool
    is_clean: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class ReadLog(Question[LogSlice], name="log"):
    """The log of `cell`, or what the agent of `queue` printed.

    What stands behind `offset`; without one the last `lines` complete lines with what is unfinished
    after them. With the path of the box's `credentials` these lines are for others' eyes: without
    the values in that file, and without colours. Where nothing stands behind the offset and
    somebody lives who may write to it, that is waited for, `wait_s` at most.
    """

    offset: Count | None
    lines: Count
    most_bytes: Count
    cell: CellName | None = field(default=None, metadata=SILENT)
    queue: QueueName | None = field(default=None, metadata=SILENT)
    credentials: BoxPath | None = field(default=None, metadata=SILENT)
    wait_s: Count = field(default=0, metadata=SILENT)

    def __post_init__(self) -> None:
        if (self.cell is None) == (self.queue is None):
            raise ValueError(_("expected the name of a cell or of a queue, and not both"))
        if self.credentials and self.offset is not None:
            raise ValueError(_("credentials: a value may lie across an offset"))
