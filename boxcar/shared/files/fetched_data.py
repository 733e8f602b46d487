"""`fetched.json`: what a URL of the job's data gave, and the data folder that was made of it.

It lies beside the data folders, for all runs of that box or tier, and once more in the run, as its
first box got it: a later box that gets something else must not train on it.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.files.heartbeat import Fetching
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.paths import DATA_PROOF, DataPaths
from boxcar.shared.record import dataclass
from boxcar.shared.safe_url import identity_of_url, shown

RECORD, PROBLEM, PROGRESS = "fetched.json", "problem", "progress.json"
_LONGEST_NAME = 200


@dataclass(frozen=True)
class FetchedData:
    FORMAT: ClassVar[str] = "fetched-data"
    VERSION: ClassVar[int] = 1

    url: str
    sha256: str  # of the file as it came
    size_bytes: int
    digest: str  # of the data folder
    box: str
    fetched_at: str
    extra: dict[str, Any] = field(default_factory=dict)


def key_of(one: DataUrl) -> str:
    """The same for all that asks for the same; with another digest it is something else."""
    return digest.of_json([identity_of_url(one.url), one.sha256, one.unpack])[:32]


def url_of(one: DataUrl) -> str:
    """As it may be shown."""
    return shown(one.url)


def file_name(one: DataUrl) -> str:
    """What the file is called below {data}/name: as in its URL."""
    name = unquote(urlsplit(one.url).path).rpartition("/")[2]
    is_usable = name and name[0] != "." and "\0" not in name and name.isprintable()
    return name if is_usable and len(name.encode()) <= _LONGEST_NAME else one.name


def find_data(store: DataPaths, one: DataUrl) -> FetchedData | None:
    """What it gave, where the folder that was made of it is still there."""
    path = store.of_url(key_of(one)) / RECORD
    try:
        found = read_fetched_data(path)
    except (OSError, DamagedError):
        return None
    return found if (store.folder(found.digest) / DATA_PROOF).exists() else None


def read_fetched_data(path: Path) -> FetchedData:
    """Raises OSError, DamagedError."""
    return codec.from_document(FetchedData, path.read_bytes(), str(path))


def write_progress(folder: Path, now: Fetching) -> None:
    """For who waits; it need not survive a crash."""
    with contextlib.suppress(OSError):
        atomic.replace_by(
            folder / PROGRESS, json.dumps(codec.encode(now)).encode(), is_synced=False
        )


def read_progress(folder: Path) -> Fetching | None:
    """How far the fetching in that folder is; None where nothing tells."""
    try:
        found = json.loads((folder / PROGRESS).read_bytes())
        return codec.decode(Fetching, found, PROGRESS)
    except (OSError, ValueError, DamagedError):
        return None
