"""What is kept beside a file: how much of it has come, and the receipt of what came."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec


@dataclass(frozen=True)
class PartRecord:
    """The pieces of NAME.part that are on the disk for certain, and the source they are of."""

    FORMAT: ClassVar[str] = "fetch-part"
    VERSION: ClassVar[int] = 1

    source: str
    piece_bytes: int
    done: tuple[int, ...]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """A file that came whole. `checked_by` says what proved it: sha256, md5, or its size alone."""

    FORMAT: ClassVar[str] = "fetched"
    VERSION: ClassVar[int] = 1

    url: str  # as it may be shown
    place: str  # shown.identity of the URL
    size_bytes: int
    mtime_ns: int
    sha256: str
    checked_by: str
    version: str
    fetched_at: str
    extra: dict[str, Any] = field(default_factory=dict)


def part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def part_record_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part.json")


def receipt_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.receipt.json")


def next_receipt_of(target: Path) -> Path:
    """The receipt that is written before the file gets its name, so that no crash orphans it."""
    return target.with_name(f".{target.name}.receipt.next.json")


def read_part(target: Path) -> PartRecord | None:
    """The record of a part; None where there is none that can be used."""
    path = part_record_of(target)
    try:
        return codec.from_document(PartRecord, path.read_bytes(), str(path))
    except (FileNotFoundError, DamagedError):
        return None


def find_receipt(target: Path, *, by_content: bool) -> Receipt | None:
    """The receipt of the file as it lies there; None where it is not what was fetched.

    Its size and time tell. `by_content`: where only the time differs (a copy, a restored disk), its
    content is read. Raises DamagedError for a receipt that cannot be read.
    """
    try:
        stat = target.stat()
    except FileNotFoundError:
        return None
    same_size = [found for found in _receipts(target) if found.size_bytes == stat.st_size]
    for found in same_size:
        if found.mtime_ns == stat.st_mtime_ns:
            return found
    sha256 = digest.of_file(target) if same_size and by_content else ""
    return next((found for found in same_size if found.sha256 == sha256), None)


def drop_part(target: Path) -> None:
    part_record_of(target).unlink(missing_ok=True)
    part_of(target).unlink(missing_ok=True)


def give_name(target: Path, record: Receipt) -> None:
    """NAME.part becomes NAME; after a crash anywhere in here a receipt fits what lies there."""
    atomic.write_whole(next_receipt_of(target), codec.to_document(record))
    part_of(target).replace(target)
    atomic.sync_folder(target.parent)
    next_receipt_of(target).replace(receipt_of(target))
    part_record_of(target).unlink(missing_ok=True)
    atomic.sync_folder(target.parent)


def put_receipt(target: Path, record: Receipt) -> None:
    atomic.write_whole(receipt_of(target), codec.to_document(record))


def digests(path: Path) -> dict[str, str]:
    """SHA-256 and MD5 of what the disk gives back, which also proves that it was written."""
    sums = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    with path.open("rb", buffering=0) as file:
        digest.forget_cached_pages(file.fileno())
        while block := file.read(digest.BLOCK_BYTES):
            for one in sums.values():
                one.update(block)
    return {name: one.hexdigest() for name, one in sums.items()}


def _receipts(target: Path) -> list[Receipt]:
    found = []
    for path in (receipt_of(target), next_receipt_of(target)):
        if path.exists():
            found.append(codec.from_document(Receipt, path.read_bytes(), str(path)))
    return found
