"""Whether a cell's result stands: published, and not known to be bad."""

from __future__ import annotations

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, receipt
from boxcar.shared.paths import DurablePaths


def stands(tier: DurablePaths, cell: str) -> bool:
    """True for a result that no later attempt may replace. Raises DamagedError."""
    return tier.manifest(cell).exists() and not is_known_bad(tier, cell)


def is_verified(tier: DurablePaths, cell: str) -> bool:
    """True where this very result has a receipt that says that it is good."""
    try:
        found = receipt.read_cell(tier.receipt(cell))
        return found.manifest_sha256 == manifest.sha256(tier.manifest(cell)) and found.is_good
    except (FileNotFoundError, DamagedError):
        return False


def is_known_bad(tier: DurablePaths, cell: str) -> bool:
    """True where this very result has a receipt that says what is wrong with it."""
    try:
        found = receipt.read_cell(tier.receipt(cell))
    except FileNotFoundError:
        return False
    return found.manifest_sha256 == manifest.sha256(tier.manifest(cell)) and not found.is_good
