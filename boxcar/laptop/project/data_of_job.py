"""`data:` of job.yaml: folders of this machine that each box gets once, and URLs that it fetches
itself, each below {data} by name.

Which files they hold is asked of the disk each time; what is in them is read by release/data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from boxcar.laptop.project.data_values import EXAMPLE
from boxcar.laptop.project.job import Job
from boxcar.shared.cell import placeholders
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

# Beyond that a question with all their names is slower than the data.
MOST_FILES = 200_000


@dataclass(frozen=True)
class DataFolder:
    """A folder of this machine with the regular files in it, by their names below it."""

    name: str
    source: Path
    files: tuple[str, ...]
    size_bytes: int


def source_of(root: Path, folder: str) -> Path:
    """The real folder: a name of it may be a link. `~/` is this machine's home."""
    return Path(os.path.realpath(root / os.path.expanduser(folder)))  # noqa: PTH111


def folders_of(job: Job) -> dict[str, str]:
    """Those of this machine, by name."""
    return {name: one.folder for name, one in sorted(job.data.items()) if one.folder}


def urls_of(job: Job) -> tuple[DataUrl, ...]:
    """What each box fetches itself."""
    return tuple(
        DataUrl(name, one.url, one.sha256, one.unpack, one.token)
        for name, one in sorted(job.data.items())
        if one.url
    )


def list_data(root: Path, job: Job) -> list[DataFolder]:
    return [_listed(name, source_of(root, folder)) for name, folder in folders_of(job).items()]


def _listed(name: str, source: Path) -> DataFolder:
    found = sorted(_walk(source))
    sizes = ((source / one).lstat().st_size for one in found)
    return DataFolder(name, source, tuple(found), sum(sizes))


def _walk(source: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(source):
        for name in (*names, *(one for one in folders if Path(parent, one).is_symlink())):
            yield os.path.relpath(Path(parent, name), source)


def in_code(root: Path, job: Job) -> list[str]:
    """Those that lie in the code folder, relative to it: they travel as data, not as code."""
    code = Path(os.path.realpath(root / job.code))
    sources = (source_of(root, folder) for folder in folders_of(job).values())
    return [str(one.relative_to(code)) for one in sources if one != code and code in one.parents]


def faults(root: Path, job: Job) -> Iterator[Sentence]:
    """What keeps a folder from being sent. Looks at names and not at contents."""
    for one in urls_of(job):
        if one.token and one.token not in job.secrets:
            yield _(
                "{at}: {name}: {token} does not stand in secrets. Add it there: secrets: [{token}]",
                at=job.at("data"),
                name=one.name,
                token=one.token,
            )
    for name, folder in folders_of(job).items():
        at = f"{job.at('data')}: {name}"
        source = source_of(root, folder)
        if not source.is_dir():
            yield _("{at}: there is no folder {folder}", at=at, folder=source)
        elif source in (code := Path(os.path.realpath(root / job.code)), *code.parents):
            yield _("{at}: {folder} holds the code itself", at=at, folder=source)
        else:
            yield from _faults_within(at, source)
    if not job.data and (place := _asked(job)):
        yield _(
            "{at}: {{data}} stands for the folders of data:, but there are none. Write {example}",
            at=job.at(place),
            example=EXAMPLE,
        )


def _faults_within(at: str, source: Path) -> Iterator[Sentence]:
    found = list(_walk(source))
    if not found:
        yield _("{at}: {folder} is empty", at=at, folder=source)
    if len(found) > MOST_FILES:
        yield _(
            "{at}: {folder} has {n:,} files; {most:,} are the most. Pack them, such as with tar",
            at=at,
            folder=source,
            n=len(found),
            most=MOST_FILES,
        )
    odd = next((one for one in found if not _is_plain(source / one)), None)
    if odd is not None:
        yield _(
            "{at}: {file} is a link or no regular file, which is not sent. Put the file itself "
            "there, or name the folder that a link leads to",
            at=at,
            file=source / odd,
        )


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _asked(job: Job) -> str | None:
    commands = {"command": job.command, "resume_args": job.resume_args}
    found = (key for key, words in commands.items() if placeholders.takes(words, "data"))
    in_env = "env" if placeholders.env_takes(job.env.values(), "data") else None
    return next(found, in_env)
