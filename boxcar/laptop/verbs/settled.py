"""Whether a run is settled, as far as that must be known to say what to type next: `verify` leaves
nothing open, and what no manifest lists is the tier's here.

Of a large run it is known by what was found before. `down` asks for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.common.kept.found_before import FoundBefore, digest_of_stamps
from boxcar.laptop.results import compare
from boxcar.laptop.run.missing import Missing
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.sites.site import Site
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.receipt import RunReceipt

# Of fewer cells all is read as fast as what was found before.
WORTH_CELLS = 1000
_SETTLED, _BESIDE = "settled", "beside"


class Settled:
    """Of one look at a run."""

    def __init__(self, view: RunView, site: Site) -> None:
        self._view, self._site = view, site
        is_large = len(view.cells) >= WORTH_CELLS
        self._before = FoundBefore(Home(site.project.root).found(view.run) if is_large else None)

    def is_so(self) -> bool:
        """Whether the receipt speaks of this roster and these manifests, and leaves nothing
        open.
        """
        path = self._site.results.receipt
        try:
            data = path.read_bytes()
        except OSError:
            return False
        published = self._published()
        return self._before.holds(
            _SETTLED,
            lambda: _digest(data, published),
            lambda: _reads_as_settled(data, published, path),
        )

    def stale(self) -> list[Missing]:
        """What no manifest lists, and is not the tier's here."""
        found = compare.beside_the_manifests(self._site, ())

        def find() -> bool:
            found.extend(compare.beside_the_manifests(self._site, self._view.roster.cells))
            return not found

        self._before.holds(_BESIDE, self.stamps_beside, find)
        return found

    def stamps_beside(self) -> str:
        """Of the cells' folders, on the tier and here: who writes a receipt or a manifest puts a
        whole one in its place, which the folder tells.
        """
        names = [cell.name for cell in self._view.roster.cells]
        folders = (self._site.tier.cells, self._site.results.cells)
        try:
            found = [digest_of_stamps(folder, names) for folder in folders]
        except OSError:
            return ""
        return digest.of_json([names, *found]) if all(found) else ""

    def is_found(self, made: RunReceipt, stamps_beside: str) -> None:
        """`verify` has just written this receipt, and found that nothing is stale since these
        stamps were taken.
        """
        published, path = self._published(), self._site.results.receipt
        if _settles(made, published):
            now = {_SETTLED: _digest(path.read_bytes(), published), _BESIDE: stamps_beside}
            self._before.remember(now)

    def _published(self) -> dict[str, str | None]:
        return {cell.name: _published_sha256(cell, self._site) for cell in self._view.cells}


def _digest(data: bytes, published: Mapping[str, str | None]) -> str:
    return digest.of_json([digest.of_bytes(data), published])


def _reads_as_settled(data: bytes, published: Mapping[str, str | None], path: Path) -> bool:
    # A receipt that cannot be read settles nothing: verify makes it anew.
    try:
        return _settles(receipt.parse_run(data, path), published)
    except DamagedError:
        return False


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
