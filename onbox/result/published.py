"""Whether a cell's result stands: published, and not known to be bad."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared import paths
from boxcar.shared.artifacts.to_load import to_load
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import CellReceipt
from boxcar.shared.paths import DurablePaths


def stands(tier: DurablePaths, cell: str) -> bool:
    """True for a result that no later attempt may replace. Raises DamagedError."""
    return tier.manifest(cell).exists() and not is_known_bad(tier, cell)


def is_verified(tier: DurablePaths, cell: str) -> bool:
    """True where this very result has a receipt that says that it is good, or was accepted."""
    try:
        found = receipt_of(tier, cell)
        is_good = found is not None and found.is_good
        return is_good or receipt.accepted_result(tier, cell) is not None
    except DamagedError:
        return False


def has_files(tier: DurablePaths, cell: str) -> bool:
    """Whether the published files lie here, by their sizes: of a result that the laptop has lent
    there is the manifest alone. Raises DamagedError, OSError.
    """
    made, folder = manifest.read_manifest(tier.manifest(cell)), tier.cell(cell)
    sizes = {file.path: paths.inside(folder, file.path) for file in made.files}
    return all(
        sizes[file.path].is_file() and sizes[file.path].stat().st_size == file.size_bytes
        for file in made.files
    )


def is_known_bad(tier: DurablePaths, cell: str) -> bool:
    """True where this very result has a receipt that says what is wrong with it, and the laptop has
    not accepted it. Raises DamagedError: of doubt nothing follows.
    """
    found = receipt_of(tier, cell)
    is_bad = found is not None and not found.is_good
    return is_bad and receipt.accepted_result(tier, cell) is None


def forget_if_loaded_otherwise(tier: DurablePaths, cell: str, wanted: Sequence[Artifact]) -> bool:
    """Remove a bad receipt of files that are to be loaded in another way by now, `wanted`.

    What somebody has put right in job.yaml costs no training: the result stands again, and is
    looked at anew. True where one was removed. A damaged one stays for whoever reads it. Raises
    OSError.
    """
    try:
        found = receipt_of(tier, cell)
        if found is None or found.is_good:
            return False
        made = manifest.read_manifest(tier.manifest(cell))
    except DamagedError:
        return False
    modes = {file.path: file.load for file in to_load(wanted, made)}
    if all(modes.get(finding.path, finding.load) == finding.load for finding in found.findings):
        return False
    tier.receipt(cell).unlink()
    atomic.sync_folder(tier.cell(cell))
    return True


def receipt_of(tier: DurablePaths, cell: str) -> CellReceipt | None:
    """That of this very result; None where there is none yet. Raises DamagedError."""
    try:
        found = receipt.read_cell(tier.receipt(cell))
        is_its_own = found.manifest_sha256 == manifest.sha256(tier.manifest(cell))
    except FileNotFoundError:
        return None
    return found if is_its_own else None
