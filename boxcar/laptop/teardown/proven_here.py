"""What this machine's records say of another run's results: which of them are verified here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from boxcar.laptop.common import home
from boxcar.laptop.project.project import results_of
from boxcar.laptop.results.results_folder import is_torn_down
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import CellVerdict
from boxcar.shared.paths import ResultPaths


def not_proven(run: str, cells: Mapping[str, str | None]) -> list[str]:
    """Of these cells, with the digests of their manifests, those that may lie nowhere else.

    A run that was torn down was approved as it was; a cell that a person gave up is no loss.
    """
    settled: set[str] = set()
    for results in _folders(run):
        if is_torn_down(results):
            return []
        settled |= _settled(results, cells)
    return sorted(cells.keys() - settled)


def _folders(run: str) -> Iterator[ResultPaths]:
    for known in home.known_runs():
        if known.run == run:
            yield results_of(known.job.parent, run)


def _settled(results: ResultPaths, cells: Mapping[str, str | None]) -> set[str]:
    try:
        verdicts = receipt.read_run(results.receipt).cells
    except (OSError, DamagedError):
        return set()
    return {
        one.cell
        for one in verdicts
        if one.cell in cells and _is_settled(results, one, cells[one.cell])
    }


def _is_settled(results: ResultPaths, verdict: CellVerdict, manifest_sha256: str | None) -> bool:
    if not verdict.is_settled or verdict.manifest_sha256 != manifest_sha256:
        return False
    if manifest_sha256 is None:
        return True
    try:
        return digest.of_bytes(results.manifest(verdict.cell).read_bytes()) == manifest_sha256
    except OSError:
        return False
