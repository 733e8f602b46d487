"""What job.yaml says of a box before its first cell: `setup`, `requirements` and `python`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.shared.files.plan import AUTO
from boxcar.shared.sentence import Sentence, _


def training_python(job: Job, profile: Profile) -> str:
    """The job's own interpreter, of whose environment the folder may stand in its place."""
    if job.python in (None, AUTO):
        return profile.training_python
    is_folder = "/" in job.python and not PurePosixPath(job.python).name.startswith("python")
    return f"{job.python.rstrip('/')}/bin/python" if is_folder else job.python


def faults(root: Path, job: Job) -> Iterator[Sentence]:
    if job.install and not job.requirements:
        yield _(
            "{at}: there is no requirements: to install from. Write requirements: requirements.txt",
            at=job.at("install"),
        )
    for key, name in (("setup", job.setup), ("requirements", job.requirements)):
        if name and not (root / job.code / name).is_file():
            yield _(
                "{at}: there is no file {name} in the code folder {code}",
                at=job.at(key),
                name=name,
                code=root / job.code,
            )
