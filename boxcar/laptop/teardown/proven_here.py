"""What this machine's records say of another run's results: which of them are verified here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from boxcar.laptop.common import known_runs
from boxcar.laptop.project.project import results_of
from boxcar.laptop.results.results_folder import is_torn_down
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import receipt
from boxcar.shared.paths import ResultPaths


def not_proven(run: str, cells: Mapping[str, str | None]) -> list[str]:
    """Of these cells, with the digests of their manifests, those that may lie nowhere else.

    A run that was torn down was approved as it was; a cell that a person gave up is no loss.
    """
    settled: set[str] = set()
    for results in _folders(run):
        if is_torn_down(results):
            return []
        settled |= {name for name, found in cells.items() if _is_settled(results, name, found)}
    return sorted(cells.keys() - settled)


def _folders(run: str) -> Iterator[ResultPaths]:
    for known in known_runs.known():
        if known.run == run:
            yield results_of(known.job.parent, run)


def _is_settled(results: ResultPaths, cell: str, manifest_sha256: str | None) -> bool:
    try:
        verdicts = {one.cell: one for one in receipt.read_run(results.receipt).cells}
        verdict = verdicts.get(cell)
        if verdict is None or not verdict.is_settled or verdict.manifest_sha256 != manifest_sha256:
            return False
        return (
            manifest_sha256 is None
            or digest.of_bytes(results.manifest(cell).read_bytes()) == manifest_sha256
        )
    except (OSError, DamagedError):
        return False
