"""job.yaml: what a person asks for. Read on the laptop only; the box gets it resolved, as a plan.

Each value is checked by itself, see `job_values.py`. What needs the queue files or the code folder
is checked by `resolve.py`. Values of secrets are never in the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from boxcar.laptop.common import yaml_models
from boxcar.laptop.common.near import no_such
from boxcar.laptop.common.units import Price
from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project import job_values, short_run
from boxcar.laptop.project.data_values import Data
from boxcar.laptop.project.job_values import (
    EVERY_BOX,
    ArtifactPath,
    Budgets,
    Candidates,
    Collected,
    Command,
    Count,
    EnvName,
    EnvValue,
    Language,
    Launcher,
    Links,
    Prices,
    Queues,
    Ranks,
    RelativePath,
    ResumeArgs,
    ResumePath,
    RunName,
    Time,
    distinct,
)
from boxcar.laptop.project.metric_values import Metrics
from boxcar.laptop.project.notify.endpoints import Notify
from boxcar.laptop.project.profiles.schema import Interpreter
from boxcar.laptop.project.profiles.slurm_options import SlurmOfJob
from boxcar.laptop.project.resources import Resources, Size
from boxcar.laptop.project.short_run import ShortRun
from boxcar.shared import errors
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import GPU_FREE_BELOW_BYTES, SETUP_TIME_S
from boxcar.shared.sentence import _


class Artifact(Model):
    """What a finished cell must hold; `keys` must be there when it is loaded, and `load` says how.

    Of the matches of a pattern `take` says which.
    """

    path: ArtifactPath
    keys: tuple[str, ...] = ()
    load: Literal["safe", "trusted", "bytes"] = "safe"
    take: Literal["all", "newest"] = "all"

    @model_validator(mode="after")
    def _fits(self) -> Artifact:
        job_values.refuse_odd_artifact(self.path, keys=self.keys, load=self.load, take=self.take)
        return self


def _artifact(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _said(value: object) -> object:
    """None may be left behind, where a person says so; nobody shall have forgotten them."""
    if value is None:
        raise ValueError(
            _(
                "list what a finished cell must leave, such as artifacts: [best.pth], or "
                "artifacts: [] if its log is its result"
            )
        )
    return value


def _unlike(value: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    distinct(tuple(artifact.path for artifact in value))
    return value


Artifacts = Annotated[
    tuple[Annotated[Artifact, BeforeValidator(_artifact)], ...], AfterValidator(_unlike)
]


Short = Annotated[ShortRun, BeforeValidator(short_run.of_text)]


class CellException(Model):
    """What the cells of a name or pattern have otherwise than the rest. `time` is in seconds."""

    nproc_per_node: Count | None = None
    nodes: Count | None = None
    env: dict[EnvName, EnvValue] = Field(default_factory=dict)
    command: Command | None = None
    launcher: Launcher | None = None
    time: Time | None = None
    artifacts: Artifacts | None = None
    resume: ResumePath | None = None
    smoke: Short | None = None


def _names(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    return dict.fromkeys(names, "") if isinstance(names, list) else names


class ReportWords(Model):
    """How a report reads the run: the seed's key, the baseline, and the numbers to be shown: one, a
    list, or `{loss: min, acc: max}`.
    """

    seed: str = ""
    baseline: str = ""
    metric: Annotated[dict[str, Literal["min", "max", ""]], BeforeValidator(_names)] = Field(
        default_factory=dict
    )


# How long a box is idle before it is told to stop itself.
AFTER_IDLE_S = 30 * 60


class Job(Model):
    """job.yaml. Paths are relative to its folder; those of artifacts, resume, collect and scratch
    to {out}.
    """

    name: RunName
    code: str = "."
    command: Command
    workdir: Literal["code", "out"] = "code"
    launcher: Launcher = "torchrun"
    nproc_per_node: Ranks = None
    gpus_per_cell: Count | None = None
    slots: Count | None = None
    backfill: bool = False
    gpu_free_below: Size = GPU_FREE_BELOW_BYTES
    cells: dict[str, CellException] = Field(default_factory=dict)
    setup: RelativePath | None = None
    requirements: RelativePath | None = None
    install: bool = False
    setup_time: Time = SETUP_TIME_S
    when_stalled: Literal["tell", "end"] = "tell"
    when_nan: Literal["keep", "end"] = "keep"
    when_done: Literal["keep", "end"] = "keep"
    after_idle: Time = AFTER_IDLE_S
    python: Interpreter | None = None
    epochs: Count | None = None
    run: str | None = None
    queues: Queues
    order: Literal["file", "longest"] = "file"
    artifacts: Annotated[Artifacts, BeforeValidator(_said)] = Field(
        default=None, validate_default=True
    )
    metrics: Metrics = Field(default_factory=dict)
    collect: Collected = ()
    links: Links = Field(default_factory=dict)
    data: Data = Field(default_factory=dict)
    resume: ResumePath | None = None
    resume_args: ResumeArgs = ()
    time: Time | None = None
    scratch: tuple[RelativePath, ...] = ()
    smoke: Short = ShortRun()
    rehearse: Short = ShortRun()
    env: dict[EnvName, EnvValue] = Field(default_factory=dict)
    secrets: tuple[EnvName, ...] = ()
    linger_s: Annotated[int, Field(ge=0, le=999_999_999)] = 0
    resources: Resources = Resources()
    candidates: Candidates = ()
    notify: tuple[Notify, ...] = ()
    language: Language | None = None
    report: ReportWords = ReportWords()
    price: Prices = Field(default_factory=dict)
    budget: Budgets = Field(default_factory=dict)
    max_rate: Price | None = None  # of all live boxes that this person has rented
    slurm: SlurmOfJob = SlurmOfJob()

    @property
    def boxes(self) -> tuple[str, ...]:
        """Those of all queues."""
        lists = ([boxes] if isinstance(boxes, str) else boxes for boxes in self.queues.values())
        return tuple(box for boxes in lists for box in boxes)

    @model_validator(mode="before")
    @classmethod
    def _queues_of_run(cls, value: object) -> object:
        if not isinstance(value, dict) or value.get("run") is None:
            return value
        if "queues" in value:
            raise ValueError(_("run already names the queues: use either run or queues"))
        return value | {"queues": job_values.queues_of(value["run"])}

    @model_validator(mode="after")
    def _prices_of_boxes(self) -> Job:
        known = [*self.boxes, *self.candidates]
        for name in self.price.keys() - {*known, EVERY_BOX}:
            raise ValueError(_("price: {name}", name=no_such(name, known, what="box", of="queues")))
        return self

    @model_validator(mode="after")
    def _slurm_of_queues(self) -> Job:
        for file in self.slurm.queues.keys() - self.queues.keys():
            said = no_such(file, self.queues, what="queue file", of="queues")
            raise ValueError(_("slurm.queues: {said}", said=said))
        return self


def read_job(path: Path) -> Job:
    """job.yaml, checked. Raises InputError with all its problems."""
    if not path.exists():
        raise InputError(
            _(
                "{file}: no such file. Go to your project's folder, name the file with --job "
                "PATH, or make one from your code",
                file=path,
            ),
            errors.Command("init"),
        )
    return yaml_models.load(path, Job)
