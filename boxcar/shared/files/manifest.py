"""The manifest of a cell: what was published, byte by byte. Written last, and once.

While it is not there, nothing in the cell's folder is believed. The agent that published the cell
writes it; everybody reads it.
"""

from __future__ import annotations

import stat
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared import paths, timestamp
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, reason_of
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _


@dataclass(frozen=True)
class FileRecord:
    """One file: its path relative to the folder (forward slashes), size and SHA-256."""

    path: str
    size_bytes: int
    sha256: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """What was brought along and proves nothing, such as a tracker's offline logs: hashed, never
    loaded. `left_out` are sentences, each with why and the names.
    """

    files: tuple[FileRecord, ...] = ()
    left_out: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True)
class Gpu:
    name: str
    uuid: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainedOn:
    """What an attempt had: without it nobody can say whether two results may be compared. `gpus`
    are those that it saw, as far as the driver names them; `ranks` of all nodes; `beside`: how many
    other cells ran on the box when it began; `share`: which part of the box was its own.
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    ranks: int | None = None
    beside: int = 0
    share: float = 1.0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    FORMAT: ClassVar[str] = "manifest"
    VERSION: ClassVar[int] = 1

    run: str
    cell: str
    queue: str
    box: str
    release: str
    attempt: int
    task: str
    cfg: str
    epochs: int
    started_at: str
    ended_at: str
    files: tuple[FileRecord, ...]
    # What a person should know of this result, though nothing is wrong with it.
    warnings: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    # What was run: the digest of what its line asked for, its overrides, all words that the
    # launcher got but for those of a resume, and the config's text as far as it is one.
    saying: str | None = field(default=None, metadata=codec.LATER)
    overrides: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    words: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    config: str | None = field(default=None, metadata=codec.LATER)
    # Where the attempt's own part of the published log begins.
    log_begins_at_bytes: int = field(default=0, metadata=codec.LATER)
    # What was taken of each artifact that is a pattern: files, or folders.
    matches: dict[str, tuple[str, ...]] = field(default_factory=dict, metadata=codec.LATER)
    carried: Carried = field(default_factory=Carried, metadata=codec.LATER)
    # What marks it in every table: its end is likely and not proven, or it did less than was asked.
    doubt: str | None = field(default=None, metadata=codec.LATER)
    trained_on: TrainedOn | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def all_files(self) -> tuple[FileRecord, ...]:
        """What is published, and what is carried beside it."""
        return (*self.files, *self.carried.files)

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.all_files)


@dataclass(frozen=True)
class Difference:
    """A file that is not as its manifest says: `problem` with the observed and expected value."""

    path: str
    problem: str

    @property
    def sentence(self) -> Sentence:
        return _("{path} {problem}", path=self.path, problem=self.problem)


def read_manifest(path: Path) -> Manifest:
    """Raises FileNotFoundError, or DamagedError for a file that is no manifest."""
    return parse_manifest(path.read_bytes(), str(path))


def parse_manifest(data: bytes, where: str) -> Manifest:
    manifest = codec.from_document(Manifest, data, where)
    for file in manifest.all_files:
        try:
            paths.inside(Path(), file.path)
        except DamagedError as error:
            raise DamagedError(_("{head}: {text}", head=where, text=error)) from error
    return manifest


def sha256(path: Path) -> str:
    """What receipts and approvals are bound to: the digest of the manifest's own bytes."""
    return digest.of_bytes(path.read_bytes())


def times(made: Manifest) -> tuple[float, float]:
    """When its attempt began and ended, in seconds since 1970. Raises ValueError."""
    began, ended = timestamp.parse_utc(made.started_at), timestamp.parse_utc(made.ended_at)
    return began.timestamp(), ended.timestamp()


def compare(folder: Path, files: tuple[FileRecord, ...]) -> list[Difference]:
    """Hash every file below `folder` and name each that differs, is missing, or is a link."""
    found = (compare_one(folder, file) for file in files)
    return [difference for difference in found if difference]


def compare_one(folder: Path, file: FileRecord, *, from_disk: bool = False) -> Difference | None:
    """None where the file is as its record says. `from_disk` is as in `digest.of_file`."""
    path = paths.inside(folder, file.path)
    try:
        if paths.has_symlink(folder, file.path):
            return Difference(file.path, _("is a symbolic link, expected a file"))
        found_there = path.stat()
        if not stat.S_ISREG(found_there.st_mode):
            # Opening a pipe would wait for ever.
            return Difference(file.path, _("is not a regular file"))
        size_bytes = found_there.st_size
        if size_bytes != file.size_bytes:
            told = _("is {found} bytes, expected {size}", found=size_bytes, size=file.size_bytes)
            return Difference(file.path, told)
        found = digest.of_file(path, from_disk=from_disk)
    except (FileNotFoundError, NotADirectoryError):
        return Difference(file.path, _("is missing"))
    except OSError as error:
        return Difference(file.path, _("cannot be read: {error}", error=reason_of(error)))
    if found != file.sha256:
        return Difference(file.path, digest.other(found, file.sha256))
    return None
