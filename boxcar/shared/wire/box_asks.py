"""What is asked of a box itself: who else is on it, is it good enough, keep secrets, the end."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.facts import Facts
from boxcar.shared.wire.question import (
    SILENT,
    BoxName,
    BoxPath,
    CellName,
    Count,
    Digest,
    Question,
    QueueName,
    RunName,
    Time,
    Token,
    one_of,
)

# --- other runs on the box


@dataclass(frozen=True)
class OtherRun:
    """A run on this box that is not the one that asks: its `queues` and `cells` that are at work.

    `devices` are the GPUs that these may see, null where they see all or nobody can tell. `results`
    are its cells on a tier that goes with the box: the digest of its manifest, null where the cell
    was begun and not published. `takes_free_gpus`: whether each of its cells has GPUs for itself,
    under the locks of this data folder; null where it has not, or nobody can tell.
    """

    run: RunName
    queues: tuple[str, ...]
    cells: tuple[str, ...]
    results: dict[CellName, Digest | None]
    devices: tuple[str, ...] | None = field(default=None, metadata=SILENT)
    takes_free_gpus: bool | None = field(default=None, metadata=SILENT)

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
            raise ValueError(_("expected a cell or a queue, and not both"))


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


VAST, RUNPOD, FEATURIZE = "vast", "runpod", "featurize"
STOP, DESTROY = "stop", "destroy"


@dataclass(frozen=True)
class EndsItself:
    """`alive`: what is at work, and so nothing was done. `begun_at`: when the box began to call its
    provider, or will a moment after this answer. `problem`: why it does not; `said`: what an
    earlier call was answered. No secret is in either.
    """

    alive: tuple[AtWork, ...]
    begun_at: Time | None = field(default=None, metadata=SILENT)
    problem: str | None = field(default=None, metadata=SILENT)
    said: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class EndItself(Question[EndsItself], name="end_itself"):
    """The box ends itself by its own key, through the API of `provider`. `id` is the one that a
    person typed: another box does nothing. As with `end`, nothing may be at work there. `is_look`:
    only say what came of an earlier call; `begun_at` is null where that was refused.
    """

    queues: tuple[QueueName, ...]
    credentials: BoxPath
    beside: tuple[RunName, ...]
    provider: Annotated[str, one_of(VAST, RUNPOD, FEATURIZE)]
    verb: Annotated[str, one_of(STOP, DESTROY)]
    id: str
    is_look: bool = field(default=False, metadata=SILENT)


@dataclass(frozen=True)
class DeadlineKept:
    """`problem`: why nothing on the box ends it; null where a deadline lies on it."""

    problem: str | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class KeepDeadline(Question[DeadlineKept], name="deadline"):
    """The box is to stop itself by its own key, reversibly, when nothing has moved there for
    `quiet_s`, or `most_s` from now. One that has a deadline keeps it as it is.
    """

    provider: Annotated[str, one_of(VAST, RUNPOD)]
    quiet_s: Count
    most_s: Count


# --- before a launch


@dataclass(frozen=True)
class Audit(Question[Facts], name="audit"):
    """`hook` is the profile's shell text, which runs before the training's Python is asked;
    `requirements`: packages, by the names that pip knows, of which it is to say the versions.
    `env`: what a cell gets beside it, whose mirrors are tried, and pip's where `has_pip`.
    """

    credentials: BoxPath
    training_python: str
    hook: str
    requirements: tuple[str, ...] = field(default=(), metadata=SILENT)
    env: dict[str, str] = field(default_factory=dict, metadata=SILENT)
    has_pip: bool = field(default=False, metadata=SILENT)


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
            raise ValueError(_("the field {wanted!r} is missing", wanted=wanted))
        if self.step == "read" and set(answer.files or ()) != set(self.names):
            raise ValueError(_("files: expected those of {names}", names=", ".join(self.names)))


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


# --- several at once


@dataclass(frozen=True)
class Answers:
    """Of each part its answer as it travels alone; the last one may be an error."""

    parts: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Several(Question[Answers], name="several"):
    """Questions that are answered in their order, up to the first that goes wrong: one round trip.

    Each part is as it travels alone, without the run.
    """

    parts: tuple[dict[str, Any], ...] = field(repr=False)  # there may be secrets in them
