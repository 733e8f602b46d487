"""What this person rented from this machine: a record for each box, written before it is asked for.

`$XDG_STATE_HOME/boxcar/rented/NONCE.json`, so that a verb in any project sees them all. A record is
facts with their times; what follows from them, `state_of` says. It is never removed by a program:
a box that the provider lists after its record was closed is found by it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Literal

from boxcar.laptop.common.home import known_runs_file
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, words_of
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass, replace

RecordState = Literal["asked", "rented", "closed"]


@dataclass(frozen=True)
class RentedBox:
    """`key`: the fingerprint of the account's key. `asked_at` is the intent; `id` what the create
    answered. Money is by the hour in `currency`: `offered` as it was shown, `most_rate` what the
    person agreed to at most, `rate` what the box really costs. `seen_at`: when that key saw it
    alive; `replaced_at`: when another box took its place under the alias. `quiet_s`, `most_s`: the
    deadline that the person agreed to, 0 where the question had none. One of `refused_at` (a
    clear no), `missing_at` (never seen) and `gone_at` closes it.
    """

    FORMAT: ClassVar[str] = "rented"
    VERSION: ClassVar[int] = 1

    nonce: str
    provider: str
    run: str
    box: str
    job: str
    label: str
    key: str
    asked_at: str
    gpu: str
    gpus: int
    offered: float
    most_rate: float
    currency: str
    hours: float | None = None
    is_spot: bool = False
    machine: str = ""
    disk_gb: int = 0
    id: str = ""
    rate: float | None = None
    seen_at: str | None = None
    user: str = ""
    host: str = ""
    port: int = 0
    up_at: str | None = None
    end_asked_at: str | None = None
    end_because: str = ""
    stopped_at: str | None = None
    replaced_at: str | None = None
    refused_at: str | None = None
    missing_at: str | None = None
    gone_at: str | None = None
    quiet_s: int = field(default=0, metadata=codec.LATER)
    most_s: int = field(default=0, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> RecordState:
        """`asked`: nobody knows yet whether there is a box, so it counts as billing."""
        if self.refused_at or self.missing_at or self.gone_at:
            return "closed"
        return "rented" if self.id else "asked"

    @property
    def is_in_use(self) -> bool:
        """Whether it came up, and is the box under its alias."""
        return bool(self.up_at) and not (self.end_asked_at or self.replaced_at or self.gone_at)


def folder_of(environ: Mapping[str, str] = os.environ) -> Path:
    return known_runs_file(environ).parent / "rented"


def write_record(record: RentedBox) -> RentedBox:
    """Durably, before the caller does what it says. Raises OSError."""
    folder = folder_of()
    atomic.make_folder(folder)
    atomic.write_whole(folder / f"{record.nonce}.json", codec.to_document(record), mode=0o600)
    return record


def write_log(record: RentedBox, text: str) -> Path:
    """What the host said of this box, beside its record. Raises OSError."""
    path = folder_of() / f"{record.nonce}.log"
    atomic.write_whole(path, text.encode(), mode=0o600)
    return path


def note(record: RentedBox, *times: str, **facts: Any) -> RentedBox:
    """The record with these facts, and the present time in each field of `times`; written."""
    now = timestamp.utc_now()
    return write_record(replace(record, **dict.fromkeys(times, now), **facts))


def read_records() -> tuple[list[RentedBox], list[DamagedError]]:
    """All of them, oldest first, and of those that cannot be read why."""
    found: list[RentedBox] = []
    damaged: list[DamagedError] = []
    folder = folder_of()
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            found.append(codec.from_document(RentedBox, path.read_bytes(), str(path)))
        except DamagedError as damage:
            damaged.append(damage)
        except OSError as error:
            damaged.append(DamagedError(words_of(error)))
    return sorted(found, key=lambda one: one.asked_at), damaged


def records_of(root: Path) -> list[RentedBox]:
    """The live ones that were rented for jobs in this folder, oldest first."""
    found, _damaged = read_records()
    return [one for one in live_records(found) if Path(one.job).parent == root]


def record_of_alias(root: Path, alias: str) -> RentedBox | None:
    """The box that stands under this alias now: not one whose place another took."""
    named = [one for one in records_of(root) if one.box == alias and not one.replaced_at]
    return named[-1] if named else None


def live_records(records: Sequence[RentedBox]) -> list[RentedBox]:
    return [one for one in records if one.state != "closed"]
