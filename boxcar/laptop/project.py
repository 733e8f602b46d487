"""A project: the folder of a job.yaml, its profile, and the plan that they make. Verbs take one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from boxcar.formats.errors import InputError
from boxcar.formats.paths import DurablePaths, ResultPaths, ScratchPaths
from boxcar.formats.plan import Plan
from boxcar.laptop.job import Job, read_job
from boxcar.laptop.profile import Profile, load_profile
from boxcar.laptop.resolve import resolve
from boxcar.laptop.strict_yaml import did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Project:
    """`root` is the folder of job.yaml; `queue_files` are the local ones, by the queue's name."""

    root: Path
    job: Job
    profile: Profile
    plan: Plan
    queue_files: dict[str, Path]

    @property
    def durable(self) -> DurablePaths:
        return DurablePaths(Path(self.plan.durable_dir), self.plan.run)

    @property
    def results(self) -> ResultPaths:
        return ResultPaths(self.root / "results", self.plan.run)

    def scratch(self, box: str) -> ScratchPaths:
        """Raises InputError for a box that is not in the plan."""
        for known in self.plan.boxes:
            if known.name == box:
                return ScratchPaths(Path(known.data_dir), self.plan.run)
        names = [known.name for known in self.plan.boxes]
        raise InputError(
            f"the run {self.plan.run} has no box {box!r}{did_you_mean(box, names)}; "
            f"it has: {', '.join(names)}"
        )


def open_project(job_path: Path, profile_name: str) -> Project:
    """Read and resolve everything that people wrote. Raises InputError with all problems."""
    # The folder is resolved and the file is not: a linked job.yaml still means the folder it is in.
    root = job_path.parent.resolve()
    problems: list[str] = []
    job = _noting(problems, lambda: read_job(job_path))
    profile = _noting(problems, lambda: load_profile(profile_name, root))
    if job is None or profile is None:
        raise InputError(problems)
    plan, queue_files = resolve(root, job, profile)
    return Project(root, job, profile, plan, queue_files)


def _noting(problems: list[str], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except InputError as error:
        problems += error.problems
        return None
