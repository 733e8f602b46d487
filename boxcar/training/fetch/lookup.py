"""Where each wanted file is: the patterns in their order, and all that is nowhere said at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.errors import InputError, TemporaryError
from boxcar.training.fetch import local_files, source
from boxcar.training.fetch.data_spec import Candidate, Spec, WantedFile
from boxcar.training.fetch.source import Source, shown


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
    if found_here := local_files.find_here(to, file, by_content=by_content):
        return Outcome(file, here=to / found_here.name)
    reasons: list[str] = []
    errors: list[Exception] = []
    for candidate in file.candidates:
        try:
            found = source.look(candidate.url)
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
