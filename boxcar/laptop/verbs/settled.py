"""Whether a run is settled, as far as that must be known to say what to type next: `verify` leaves
nothing open, and what no manifest lists is the tier's here.

`down` asks for itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.results import compare
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.sites.site import Site
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.receipt import RunReceipt


def is_settled(view: RunView, site: Site) -> bool:
    """Whether the receipt speaks of this roster and these manifests, and leaves nothing open."""
    try:
        found = receipt.read_run(site.results.receipt)
    except (OSError, DamagedError):  # verify makes it anew
        return False
    return _settles(found, {cell.name: _published_sha256(cell, site) for cell in view.cells})


def stale_cells(view: RunView, site: Site) -> list[Missing]:
    """What no manifest lists, and is not the tier's here."""
    return compare.beside_the_manifests(site, view.roster.cells)


def _settles(found: RunReceipt, published: Mapping[str, str | None]) -> bool:
    seen = {verdict.cell: verdict.manifest_sha256 for verdict in found.cells}
    return found.is_full and all(
        cell in seen and sha256 in (None, seen[cell]) for cell, sha256 in published.items()
    )


def _published_sha256(cell: CellView, site: Site) -> str | None:
    """Of a cell that failed, too: it may have been published again, and be bad again."""
    # The look has held the one on the tier against it.
    if sha256 := cell.verified_sha256:
        return sha256
    try:
        return manifest.sha256(site.tier.manifest(cell.name))
    except OSError:
        return None
