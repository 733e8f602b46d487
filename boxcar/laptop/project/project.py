"""A project: the folder of a job.yaml, its profile, and the plan that they make. Verbs take one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from boxcar.laptop.common.near import the_run, unknown_of
from boxcar.laptop.project import profile_choice
from boxcar.laptop.project.job import Job, read_job
from boxcar.laptop.project.job_values import EVERY_BOX
from boxcar.laptop.project.profile_choice import Choice
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.laptop.project.queues import rewrite
from boxcar.laptop.project.resolve import resolve
from boxcar.shared.errors import InputError, Message
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths, ResultPaths, ScratchPaths
from boxcar.shared.record import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Project:
    """`root` is the folder of job.yaml; `queue_files` are the local ones, by the queue's name.

    `doubts` and `faults` are those of Resolved; only what was opened despite them has any.
    `why` says how the profile was chosen; `take_notes` works out what may be worth a look.
    `job_path` is where it was read. `to_deal` are the files of boxes that lack lines which were
    dealt out to them, with what they are to hold.
    """

    root: Path
    job: Job
    profile: Profile
    plan: Plan
    queue_files: dict[str, Path]
    doubts: tuple[Message, ...] = ()
    faults: tuple[Message, ...] = ()
    why: str = ""
    take_notes: Callable[[], tuple[str, ...]] = tuple
    job_path: Path = Path("job.yaml")
    to_deal: Mapping[Path, bytes] = field(default_factory=dict)

    @cached_property
    def on_tier(self) -> DurablePaths:
        """The durable tier as the boxes know it. Nothing is read by these paths on the laptop."""
        return DurablePaths(Path(self.plan.durable_dir), self.plan.run)

    @property
    def results(self) -> ResultPaths:
        return results_of(self.root, self.plan.run)

    def scratch(self, box: str) -> ScratchPaths:
        """Raises InputError for a box that is not in the plan."""
        for known in self.plan.boxes:
            if known.name == box:
                return ScratchPaths(Path(known.data_dir), self.plan.run)
        names = [known.name for known in self.plan.boxes]
        raise InputError(unknown_of(box, names, what="box", of=the_run(self.plan.run)))


def open_project(
    job_path: Path,
    profile_name: str = "",
    *,
    default: str = "",
    kinds: Collection[str] = (),
    despite_faults: bool = False,
) -> Project:
    """Read and resolve everything that people wrote. Raises InputError with all problems.

    With `despite_faults` a half-written line or a config that is gone stands in the project and is
    not raised: what runs elsewhere is looked at, stopped and brought home all the same.

    Without a profile's name it is chosen (profile_choice.py); `default` is what the person's
    settings name, `kinds` are the kinds of boxes that can be reached, which a candidate's have to
    be.
    """
    # The folder is resolved and the file is not: a linked job.yaml still means the folder it is in.
    root = job_path.parent.resolve()
    rewrite.refuse_unfinished(root)
    problems: list[Message] = []
    job = _noting(problems, lambda: read_job(job_path))
    words = {"named": profile_name, "default": default}
    choice = _noting(problems, lambda: _choice(root, job, words, kinds))
    profile = _noting(problems, lambda: load_profile(choice.profile, root)) if choice else None
    if job is None or profile is None:
        raise InputError(problems)
    found = resolve(root, job, profile)
    if not despite_faults and (found.doubts or found.faults):
        raise InputError([*found.doubts, *found.faults])
    return Project(
        *(root, job, profile, found.plan, found.queue_files, found.doubts, found.faults),
        why=choice.sentence if choice else "",
        take_notes=lambda: found.notes,
        job_path=root / job_path.name,
        to_deal=found.to_deal,
    )


def _choice(
    root: Path, job: Job | None, words: Mapping[str, str], kinds: Collection[str]
) -> Choice | None:
    """Of a job that cannot be read only the profile that was named is known."""
    if job is None:
        return Choice(words["named"], "") if words["named"] else None
    return profile_choice.choose_profile(
        job, root, results_of(root, job.name), **words, kinds=kinds
    )


def results_of(root: Path, run: str) -> ResultPaths:
    """Those of a run whose job.yaml lies in `root`."""
    return ResultPaths(root / "results", run)


def _noting(problems: list[Message], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except InputError as error:
        problems += error.messages
        return None


# What an hour of each box costs: the job's own word, else the profile's.


def box_prices(
    project: Project, rented: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """By box, those that have one, as `1.98 CNY/h`. `rented`: what the provider says of some."""
    typed, of_profile = project.job.price, project.profile.meter.price
    found = {
        box: typed.get(box) or typed.get(EVERY_BOX) or rented.get(box) or of_profile
        for box in (known.name for known in project.plan.boxes)
    }
    return {name: text for name, text in found.items() if text}
