"""What of a spec lies here already, and is what was fetched."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError
from boxcar.training.fetch import records
from boxcar.training.fetch.data_spec import Candidate, Spec, WantedFile
from boxcar.training.fetch.records import Receipt
from boxcar.training.fetch.source import identity_of_url, shown


def find_here(to: Path, file: WantedFile, *, by_content: bool) -> Candidate | None:
    """The place that the file which lies here is of, if the spec still wants that.

    By its receipt, size and time; `by_content` also what only its digest proves: a copy, or a file
    that somebody brought by hand and of which the spec gives the sha256.
    """
    for candidate in file.candidates:
        path = to / candidate.name
        receipt = records.find_receipt(path, by_content=by_content)
        if receipt is None and by_content and _is_brought(path, candidate):
            return candidate
        if receipt and _is_of(receipt, candidate):
            return candidate
    return None


def renew_receipts(spec: Spec) -> None:
    """Write a receipt for what only its content proves, so that it is not read again each time."""
    for file in spec.files:
        if find_here(spec.to, file, by_content=False) is None:
            candidate = find_here(spec.to, file, by_content=True)
            if candidate:
                _renew(spec.to / candidate.name, candidate)


def refuse_foreign(paths: Iterable[Path]) -> None:
    """A file that nobody fetched, or that somebody changed since, is never overwritten."""
    foreign = [path for path in paths if path.exists() and _is_foreign(path)]
    if foreign:
        raise InputError(
            [
                f"{path}: is there and is not what was fetched; move it away or remove it, or "
                "give its sha256 in the spec"
                for path in foreign
            ]
        )


def _is_of(receipt: Receipt, candidate: Candidate) -> bool:
    is_same_place = receipt.place == identity_of_url(candidate.url)
    return is_same_place and candidate.sha256 in (None, receipt.sha256)


def _is_foreign(path: Path) -> bool:
    return records.find_receipt(path, by_content=True) is None


def _is_brought(path: Path, candidate: Candidate) -> bool:
    return bool(candidate.sha256 and path.is_file()) and digest.of_file(path) == candidate.sha256


def _renew(path: Path, candidate: Candidate) -> None:
    stat = path.stat()
    receipt = records.find_receipt(path, by_content=True) or Receipt(
        url=shown(candidate.url),
        place=identity_of_url(candidate.url),
        size_bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        sha256=candidate.sha256 or "",
        checked_by="sha256",
        version="",
        fetched_at=timestamp.utc_now(),
    )
    records.put_receipt(path, dataclasses.replace(receipt, mtime_ns=stat.st_mtime_ns))
