"""What becomes of each cell of a pull: what is here and right stays, the rest is brought."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.results import bring_cell, compare
from boxcar.laptop.results.bring_cell import OnBytes, Portion, Published, fetch_cell, read_published
from boxcar.laptop.results.judge import HashedBefore
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.run.view import RunView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.verbs.pull_outcome import FAILED, HERE, NOT_PUBLISHED, PULLED, Outcome
from boxcar.shared import paths
from boxcar.shared.disk import atomic, in_parallel
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.errors import BoxcarError, DamagedError, NewerError, message_of
from boxcar.shared.files import accepted, receipt
from boxcar.shared.message import Command
from boxcar.shared.record import dataclass

MOST_AT_ONCE = 8


def pull_cells(
    site: Site, view: RunView, cells: Sequence[RosterCell], held: int, bar: Progress
) -> list[Outcome]:
    """Each cell for itself: one that fails stops no other. The boxes work side by side."""
    hashed = HashedBefore(Home(site.project.root).hashed(site.plan.run))
    looked = in_parallel.run_in_parallel(
        lambda cell: _look_at(site, cell, view.damaged.get(cell.name), hashed), cells
    )
    bar.expect(sum(one.size_bytes for one in looked))
    boxes = {cell.name: cell.box for cell in view.cells}
    small = _pull_small(site, looked, held, bar)

    def pull_one(one: _Looked) -> Outcome:
        if one.outcome and one.outcome.word == FAILED:
            return one.outcome
        part = bar.part(one.size_bytes, f"{boxes.get(one.cell, '')} {one.cell}".strip())
        outcome = one.outcome or small.get(one.cell) or _pull_cell(site, one, held, part.at)
        part.end()
        return _with_receipt(site, outcome)

    with ThreadPoolExecutor(min(MOST_AT_ONCE, len(site.plan.boxes))) as pool:
        outcomes = list(pool.map(pull_one, looked))
    with contextlib.suppress(OSError):  # the next pull hashes once more
        hashed.write()
    return outcomes


@dataclass(frozen=True)
class _Looked:
    """What lies there of a cell; with an `outcome` where nothing is to be fetched."""

    cell: str
    published: Published | None = None
    outcome: Outcome | None = None

    @property
    def size_bytes(self) -> int:
        return self.published.manifest.size_bytes if self.published else 0


def _look_at(site: Site, cell: RosterCell, damage: str | None, hashed: HashedBefore) -> _Looked:
    try:
        if damage:
            raise DamagedError(f"it is verified in its journal, but {damage}", Command("repair"))
        published = _read_published(site, cell.name)
        if published is None:
            return _Looked(cell.name, None, Outcome(cell.name, NOT_PUBLISHED))
        if why := compare.damage(site, cell.name, published.data):
            raise DamagedError(why, Command("repair"))
        is_here = _is_here(site, cell, published, hashed)
    except (BoxcarError, OSError) as error:
        why = show.typed(message_of(error))
        return _Looked(cell.name, None, Outcome(cell.name, FAILED, why))
    outcome = _came(site, published, HERE) if is_here else None
    return _Looked(cell.name, published, outcome)


def _pull_small(
    site: Site, looked: Sequence[_Looked], held: int, bar: Progress
) -> dict[str, Outcome]:
    """By cell, what became of the small ones that are fetched together, where that went well."""
    wanted = [one.published for one in looked if one.published and one.outcome is None]
    portions = bring_cell.portions_of_cells(site, wanted)
    if not portions:
        return {}
    atomic.make_folder(site.results.partial)

    def bring(portion: Portion) -> set[str]:
        part = bar.part(portion.size_bytes, f"{portion.source}: {len(portion.cells)}")
        came = bring_cell.fetch_small_cells(site, portion, held, part.at)
        part.end()
        return came

    with TreeSync(site.results.root) as sync:
        came = set().union(*side_by_side.each(portions, bring))
        right = {one.cell: one for one in wanted if one.cell in came}
        try:
            placed = bring_cell.keep_small_cells(site, list(right.values()), sync)
        except OSError:
            return {}  # said of each cell when its turn comes
    return {
        cell: Outcome(cell, FAILED, show.typed(message_of(where)))
        if isinstance(where, Exception)
        else _came(site, right[cell], PULLED, where)
        for cell, where in placed.items()
    }


def _pull_cell(site: Site, one: _Looked, held: int, on_bytes: OnBytes) -> Outcome:
    assert one.published
    try:
        replaced = _fetch(site, one.published, held, on_bytes)
    except (BoxcarError, OSError) as error:
        return Outcome(one.cell, FAILED, show.typed(message_of(error)))
    return _came(site, one.published, PULLED, replaced)


def _came(site: Site, published: Published, word: str, replaced: Path | None = None) -> Outcome:
    size_bytes, left = published.manifest.size_bytes, lacks_cells(site, published)
    aside = str(replaced) if replaced else None
    doubt = published.manifest.doubt
    return Outcome(published.cell, word, None, size_bytes, aside, left, doubt)


def _with_receipt(site: Site, outcome: Outcome) -> Outcome:
    if outcome.word not in (HERE, PULLED):
        return outcome
    try:
        pull_receipt(site, outcome.name)
    except (BoxcarError, OSError) as error:
        return Outcome(outcome.name, FAILED, show.typed(message_of(error)))
    return outcome


def lacks_cells(site: Site, published: Published) -> tuple[str, ...]:
    folder = site.results.cell(published.cell)
    return tuple(name for name in published.carried if not paths.inside(folder, name).is_file())


def _fetch(site: Site, wanted: Published, held: int, on_bytes: OnBytes) -> Path | None:
    """As fetch_cell does. Of a result that was lent the box may have the manifest alone."""
    try:
        return fetch_cell(site, wanted, held, on_bytes)
    except (BoxcarError, OSError) as error:
        found = accepted.accepted_result(site.tier, wanted.cell)
        if found is None or not found.is_lent:
            raise
        raise DamagedError(
            f"{site.results.cell(wanted.cell)} is not as it was pulled, and its box was rented "
            f"anew and has only what was lent to it: {message_of(error).text}. Put a good copy of "
            "that folder in its place, or else",
            Command("down", ("--abandon", wanted.cell, "--because", "…")),
        ) from error


def _read_published(site: Site, cell: str) -> Published | None:
    try:
        return read_published(site, cell)
    except NewerError:
        raise
    except DamagedError as error:
        raise DamagedError(
            f"the manifest on the tier is damaged: {error}", Command("repair")
        ) from error


def _is_here(site: Site, cell: RosterCell, published: Published, hashed: HashedBefore) -> bool:
    facts = compare.compare_folder(site, cell, compare_one=hashed.compare_one)
    return facts.is_all and site.results.manifest(cell.name).read_bytes() == published.data


def pull_receipt(site: Site, cell: str) -> None:
    """The box's own receipt, which is written after the manifest, and may be written again.

    Raises DamagedError, OSError.
    """
    here = site.results.cell(cell) / paths.RECEIPT
    compare.refuse_link(site.tier.cell(cell), paths.RECEIPT)
    try:
        data = site.tier.receipt(cell).read_bytes()
    except FileNotFoundError:
        return
    if not here.exists() or here.read_bytes() != data:
        receipt.parse_cell(data, site.tier.receipt(cell))  # what is here may be the only good copy
        atomic.write_whole(here, data)
