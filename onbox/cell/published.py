"""Whether a cell's result stands: published, and not known to be bad."""

from __future__ import annotations

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import accepted, manifest, receipt
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
        return is_good or accepted.of_result(tier, cell) is not None
    except DamagedError:
        return False


def is_known_bad(tier: DurablePaths, cell: str) -> bool:
    """True where this very result has a receipt that says what is wrong with it, and the laptop has
    not accepted it. Raises DamagedError: of doubt nothing follows.
    """
    found = receipt_of(tier, cell)
    is_bad = found is not None and not found.is_good
    return is_bad and accepted.of_result(tier, cell) is None


def receipt_of(tier: DurablePaths, cell: str) -> CellReceipt | None:
    """That of this very result; None where there is none yet. Raises DamagedError."""
    try:
        found = receipt.read_cell(tier.receipt(cell))
        is_its_own = found.manifest_sha256 == manifest.sha256(tier.manifest(cell))
    except FileNotFoundError:
        return None
    return found if is_its_own else None
