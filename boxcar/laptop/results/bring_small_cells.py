"""Many small cells in one rsync from each box: a connection for each would be most of the time.

They come to where each cell lies while it comes, and nothing is believed of them: each is compared
for itself afterwards, and what is not there or not right is fetched alone, which also says why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from boxcar.laptop.results import bring_cell, compare, results_folder
from boxcar.laptop.results.bring_cell import OnBytes, Published
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.transfer import folders
from boxcar.laptop.transfer.remote_folder import Remote
from boxcar.shared import paths
from boxcar.shared.disk import checked_copy
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.errors import BoxcarError, DamagedError
from boxcar.shared.record import dataclass

# A larger one is worth an rsync of its own, and a line of its own of how far it is.
SMALL_BYTES = 32 * 1024 * 1024
# What is lost where the link breaks is fetched again, so that not all is asked for at once.
_MOST_BYTES, _MOST_CELLS = 512 * 1024 * 1024, 2000


@dataclass(frozen=True)
class Portion:
    """Cells that lie in one folder, of a box or of this machine."""

    source: Path | Remote
    cells: tuple[Published, ...]

    @property
    def size_bytes(self) -> int:
        return sum(cell.manifest.size_bytes for cell in self.cells)


def portions_of_cells(run: OpenRun, wanted: Iterable[Published]) -> list[Portion]:
    """Those of `wanted` that are small, by where they lie; none for a folder with only one."""
    found: dict[str, list[tuple[Path | Remote, Published]]] = {}
    for cell in wanted:
        if cell.manifest.size_bytes > SMALL_BYTES:
            continue
        with contextlib.suppress(BoxcarError, OSError):  # said when the cell's turn comes
            source = _above(run.boxes.cell_at(cell.cell))
            found.setdefault(str(source), []).append((source, cell))
    return [
        Portion(some[0][0], tuple(cell for _, cell in some))
        for same in found.values()
        for some in _parts(same)
        if len(some) > 1
    ]


def fetch_small_cells(run: OpenRun, portion: Portion, held: int, on_bytes: OnBytes) -> set[str]:
    """Bring them to where they lie while they come; those that came as they were published.

    Whatever goes wrong is left to the fetch of the one cell. `held` is as in `fetch_cell`.
    """
    with contextlib.suppress(BoxcarError, OSError):
        for cell in portion.cells:
            bring_cell.refuse_links(portion.source, cell, f"{cell.cell}/")
            bring_cell.partial_of(run, cell)
        sizes = [file.size_bytes for cell in portion.cells for file in cell.manifest.all_files]
        checked_copy.check_room(run.results.partial, sizes)
        folders.fetch_folder(
            portion.source,
            run.results.partial,
            files=[f"{cell.cell}/{name}" for cell in portion.cells for name in cell.names],
            keep_open=[held],
            on_wait=_look_on_small(run, portion, on_bytes),
        )
    return {cell.cell for cell in portion.cells if _came(run, cell)}


def keep_small_cells(
    run: OpenRun, cells: Collection[Published], sync: TreeSync
) -> dict[str, Path | Exception | None]:
    """Put those that came into their places, with one wait for the disk for all of them.

    By cell, where an older copy of it lies now, or what kept it from its place. Raises OSError
    where the disk has not taken what came; then nothing was put anywhere.
    """
    for cell in cells:
        _add_receipt(run, cell)
    bring_cell.make_durable(run, cells, sync, also=[paths.RECEIPT])
    placed: dict[str, Path | Exception | None] = {}
    for cell in cells:
        try:
            placed[cell.cell] = bring_cell.place(run, cell.cell, is_synced=False)
        except (BoxcarError, OSError) as error:
            placed[cell.cell] = error
    sync.make_durable([], [run.results.cells, run.results.partial])
    return placed


def _add_receipt(run: OpenRun, cell: Published) -> None:
    """The box's, as it is known here: alone each would be one more wait for the disk."""
    here = run.results.partial / cell.cell / paths.RECEIPT
    with contextlib.suppress(BoxcarError, OSError):  # said when the cell's turn comes
        here.unlink(missing_ok=True)  # a killed pull's, of another result
        compare.refuse_link(run.tier.cell(cell.cell), paths.RECEIPT)
        here.write_bytes(run.tier.receipt(cell.cell).read_bytes())


def _above(source: Path | Remote) -> Path | Remote:
    if isinstance(source, Remote):
        return replace(source, path=str(PurePosixPath(source.path).parent))
    return source.parent


def _parts(
    cells: Sequence[tuple[Path | Remote, Published]],
) -> Iterable[Sequence[tuple[Path | Remote, Published]]]:
    part: list[tuple[Path | Remote, Published]] = []
    size_bytes = 0
    for source, cell in cells:
        size_bytes += cell.manifest.size_bytes
        if part and (size_bytes > _MOST_BYTES or len(part) == _MOST_CELLS):
            yield part
            part, size_bytes = [], cell.manifest.size_bytes
        part.append((source, cell))
    yield part


def _came(run: OpenRun, cell: Published) -> bool:
    with contextlib.suppress(BoxcarError, OSError):
        partial = bring_cell.partial_of(run, cell)
        return not bring_cell.wrong(partial, cell) and not bring_cell.drop_wrong_carried(
            partial, cell
        )
    return False


def _look_on_small(run: OpenRun, portion: Portion, on_bytes: OnBytes) -> Callable[[], None]:
    most_bytes = bring_cell.most_bytes_of(portion.size_bytes)

    def look() -> None:
        came_bytes = sum(
            results_folder.bytes_below(run.results.partial / cell.cell) for cell in portion.cells
        )
        if came_bytes > most_bytes:
            raise DamagedError(f"{portion.source}: {came_bytes} bytes came of {portion.size_bytes}")
        on_bytes(came_bytes)

    return bring_cell.seldom(look)
