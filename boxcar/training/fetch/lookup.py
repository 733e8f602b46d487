"""Where each wanted file is, here or at a source; all that is nowhere is said at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.safe_url import identity_of_url, shown
from boxcar.training.fetch import records, source
from boxcar.training.fetch.data_spec import Candidate, Spec, WantedFile
from boxcar.training.fetch.records import Receipt
from boxcar.training.fetch.source import Source

# --- What of a spec lies here already, and is what was fetched.


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
                f"{path}: exists but differs from the fetched file; move or remove it, or "
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


class MissingError(InputError):
    """A required file is nowhere, or where we may not look. Nothing was fetched."""

    exit_code = 1


@dataclass(frozen=True)
class Outcome:
    """A wanted file: here already, or (`candidate` and `source`) at a source, or nowhere."""

    file: WantedFile
    here: Path | None = None
    candidate: Candidate | None = None
    source: Source | None = None
    reasons: tuple[str, ...] = ()
    """Why it was not taken from the places before."""
    is_refused: bool = False
    is_unreachable: bool = False
    """Whether one of these did not let us look, or did not answer."""

    @property
    def is_found(self) -> bool:
        return bool(self.here or self.source)

    @property
    def is_certain(self) -> bool:
        """Whether every place that was asked has said what it has."""
        return not (self.is_refused or self.is_unreachable)

    def __str__(self) -> str:
        return "\n".join([f"{self.file.task} {self.file.split}", *self.reasons])


def look_up(spec: Spec, workers: int, *, by_content: bool = False) -> list[Outcome]:
    """Where each file is. Raises MissingError or TemporaryError with all that is not found."""
    with ThreadPoolExecutor(workers, thread_name_prefix="fetch-look") as pool:
        outcomes = list(pool.map(lambda file: _look(spec.to, file, by_content), spec.files))
    # An optional file that may be there after all is not left out: results would depend on luck.
    lost = [o for o in outcomes if not o.is_found and (o.file.is_required or not o.is_certain)]
    if not all(outcome.is_unreachable for outcome in lost):
        raise MissingError([f"not found: {outcome}" for outcome in lost])
    if lost:
        raise TemporaryError("\n".join(f"cannot be looked for: {outcome}" for outcome in lost))
    return outcomes


def _look(to: Path, file: WantedFile, by_content: bool) -> Outcome:
    if found_here := find_here(to, file, by_content=by_content):
        return Outcome(file, here=to / found_here.name)
    reasons: list[str] = []
    errors: list[Exception] = []
    for candidate in file.candidates:
        try:
            found = source.look_at_source(candidate.url, candidate.token)
        except (source.RefusedError, TemporaryError) as error:
            errors.append(error)
            reasons.append(f"  {error}")
            continue
        if found:
            return Outcome(file, None, candidate, found, tuple(reasons), *_kinds(errors))
        reasons.append(f"  {shown(candidate.url)}: not there")
    return Outcome(file, None, None, None, tuple(reasons), *_kinds(errors))


def _kinds(errors: list[Exception]) -> tuple[bool, bool]:
    """Whether a place refused, and whether one did not answer."""
    refused = [isinstance(error, source.RefusedError) for error in errors]
    return any(refused), not all(refused)
