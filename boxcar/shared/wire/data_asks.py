"""What is asked of a box about data folders that runs share: are they whole, room for one, have it
proven and named, remove it.
"""

from __future__ import annotations

from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.question import Count, Digest, Question


@dataclass(frozen=True)
class DataSeen:
    """A folder that is stored there. `problems`: in what it is not as it was proven; `runs`: whose
    links lead to it.
    """

    digest: Digest
    size_bytes: Count
    files: Count
    problems: tuple[str, ...]
    runs: tuple[str, ...]


@dataclass(frozen=True)
class DataFound:
    """`free_bytes` of the disk that has them, or will have them."""

    folders: tuple[DataSeen, ...]
    free_bytes: Count


@dataclass(frozen=True)
class FindData(Question[DataFound], name="find_data"):
    """Which data folders are there. Files are compared by size and time, or where it `is_thorough`
    are all read. `on_tier`: on the durable tier, here and below; else on the box's own disk.
    """

    on_tier: bool
    is_thorough: bool


@dataclass(frozen=True)
class DataPrepared:
    """`folder` is where the files are to be sent; what came before is there still."""

    folder: str


@dataclass(frozen=True)
class PrepareData(Question[DataPrepared], name="prepare_data"):
    """Raises NoRoomError there, before anything is sent."""

    on_tier: bool
    digest: Digest
    sizes_bytes: tuple[Count, ...]

    def check(self, answer: DataPrepared) -> None:
        if not answer.folder.startswith("/") or self.digest not in answer.folder:
            raise ValueError(_("folder: expected the absolute path of this data folder"))


@dataclass(frozen=True)
class DataInstalled:
    is_new: bool


@dataclass(frozen=True)
class InstallData(Question[DataInstalled], name="install_data"):
    """Read all that was sent, compare it with `files`, and give it its name."""

    on_tier: bool
    digest: Digest
    files: tuple[FileRecord, ...]


@dataclass(frozen=True)
class DataRemoved:
    size_bytes: Count


@dataclass(frozen=True)
class RemoveData(Question[DataRemoved], name="remove_data"):
    """Refused where a run that is at work there is linked to it."""

    on_tier: bool
    digest: Digest


@dataclass(frozen=True)
class UrlSeen:
    """`size_bytes` null: not known. `problem`: why it cannot be had. `is_here`: it has it."""

    name: str
    size_bytes: Count | None
    problem: str | None
    is_here: bool


@dataclass(frozen=True)
class UrlsSeen:
    urls: tuple[UrlSeen, ...]
    free_bytes: Count


@dataclass(frozen=True)
class LookAtUrls(Question[UrlsSeen], name="look_at_urls"):
    """Whether this box reaches what it is to fetch, after the profile's `hook`, with what a cell
    gets beside it (`env`). One that needs a token is not asked: that is not there yet.
    """

    on_tier: bool
    urls: tuple[DataUrl, ...]
    hook: str
    env: dict[str, str]
