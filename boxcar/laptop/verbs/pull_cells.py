"""What becomes of each cell of a pull: what is here and right stays, the rest is brought."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.hosts import folders
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.ssh_errors import Unreachable
from boxcar.laptop.places.site import Site
from boxcar.laptop.results import (
    bring_cell,
    compare,
)
from boxcar.laptop.results.bring_cell import (
    OnBytes,
    Portion,
    Published,
    Terms,
    fetch_cell,
    read_published,
)
from boxcar.laptop.results.hashed_before import HashedBefore
from boxcar.laptop.run.roster import RosterCell
from boxcar.laptop.run.view import RunView
from boxcar.shared import paths
from boxcar.shared.disk import atomic, tree_sync
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    NewerError,
    message_of,
)
from boxcar.shared.files import receipt
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

HERE, PULLED, NOT_PUBLISHED, FAILED = "here", "pulled", "not published", "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of one cell, or of one journal. `replaced` is where an older copy lies now,
    `lacks` what is only carried and did not come, `doubt` what marks the result.
    """

    name: str
    word: str
    why: str | None = None
    size_bytes: int = 0
    replaced: str | None = None
    lacks: tuple[str, ...] = ()
    doubt: str | None = None


MOST_AT_ONCE = 8
# While one is greeted or hashed, the other has the line.
AT_ONCE_OF_A_BOX = 2


def pull_cells(
    site: Site,
    view: RunView,
    cells: Sequence[RosterCell],
    held: int,
    bar: Progress,
    *,
    most_kib_s: int = 0,
) -> list[Outcome]:
    """Each cell for itself, the smallest first: one that fails stops no other. The boxes work side
    by side, except where all of them together may use only a part of the line.
    """
    terms = Terms(held, most_kib_s, side_by_side.end_if_given_up)
    at_once = min(MOST_AT_ONCE, AT_ONCE_OF_A_BOX * len(site.plan.boxes))
    most = 1 if most_kib_s else at_once
    hashed = HashedBefore(Home(site.project.root).hashed(site.plan.run))
    looked = tree_sync.run_in_parallel(
        lambda cell: _look_at(site, cell, view.damaged.get(cell.name), hashed), cells
    )
    bar.expect(sum(one.left_bytes for one in looked))
    boxes = {cell.name: cell.box for cell in view.cells}
    gone: dict[str, str] = {}
    outcomes = {one.cell: one.outcome for one in looked if one.outcome}

    def pull_one(one: _Looked) -> None:
        part = bar.part(one.left_bytes, f"{boxes.get(one.cell, '')} {one.cell}".strip())
        outcomes[one.cell] = _pull_cell(site, one, terms, gone, part.at)
        part.end()

    def bring(portion: Portion) -> set[str]:
        place, n = portion.source, len(portion.cells)
        where = place.ssh.alias if isinstance(place, Remote) else place
        name = _("{place}: {n} {n:cell|cells}", place=where, n=n)
        names = {cell.cell for cell in portion.cells}
        left_bytes = {one.cell: one.left_bytes for one in left if one.cell in names}
        part = bar.part(sum(left_bytes.values()), name)
        came = bring_cell.fetch_small_cells(site, portion, terms, part.at)
        part.total = sum(left_bytes[cell] for cell in came)  # the others come each for itself
        part.end()
        return came

    def pull_all(acts: Iterable[Callable[[], None]]) -> None:
        side_by_side.each(acts, lambda act: act(), most=most)

    left = sorted((one for one in looked if not one.outcome), key=lambda one: one.size_bytes)
    portions = bring_cell.portions_of_cells(site, [one.published for one in left if one.published])
    together = {cell.cell for portion in portions for cell in portion.cells}
    alone = [partial(pull_one, one) for one in left if one.cell not in together]
    small = partial(_pull_small, site, portions, bring, most, outcomes)
    pull_all([*([small] if portions else []), *alone])
    pull_all(partial(pull_one, one) for one in left if one.cell not in outcomes)
    with contextlib.suppress(OSError):  # the next pull hashes once more
        hashed.write_hashes()
    return [_with_receipt(site, outcomes[cell.name]) for cell in cells]


@dataclass(frozen=True)
class _Looked:
    """What lies there of a cell; with an `outcome` where nothing is to be fetched.
    `begun_bytes` came before.
    """

    cell: str
    published: Published | None = None
    outcome: Outcome | None = None
    begun_bytes: int = 0

    @property
    def left_bytes(self) -> int:
        return 0 if self.outcome else max(0, self.size_bytes - self.begun_bytes)

    @property
    def size_bytes(self) -> int:
        return self.published.manifest.size_bytes if self.published else 0


def _look_at(site: Site, cell: RosterCell, damage: str | None, hashed: HashedBefore) -> _Looked:
    try:
        if damage:
            raise DamagedError(
                _("its event log says verified, but {damage}", damage=damage), Command("repair")
            )
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
    begun_bytes = folders.bytes_come(site.results.partial / cell.name)
    return _Looked(cell.name, published, outcome, begun_bytes)


def _pull_small(
    site: Site,
    portions: Sequence[Portion],
    bring: Callable[[Portion], set[str]],
    most: int,
    outcomes: dict[str, Outcome],
) -> None:
    """What becomes of the small ones that are fetched together, where that goes well."""
    atomic.make_folder(site.results.partial)
    with TreeSync(site.results.root) as sync:
        came = set().union(*side_by_side.each(portions, bring, most=most))
        right = {one.cell: one for part in portions for one in part.cells if one.cell in came}
        placed: dict[str, Path | Exception | None] = {}
        with contextlib.suppress(OSError):  # said of each cell when its turn comes
            placed = bring_cell.keep_small_cells(site, list(right.values()), sync)
    for cell, where in placed.items():
        if isinstance(where, Exception):
            outcomes[cell] = Outcome(cell, FAILED, show.typed(message_of(where)))
        else:
            outcomes[cell] = _came(site, right[cell], PULLED, where)


def _pull_cell(
    site: Site, one: _Looked, terms: Terms, gone: dict[str, str], on_bytes: OnBytes
) -> Outcome:
    """`gone` are the boxes that cannot be reached any more, and why: to ask each cell would take as
    many times as long.
    """
    assert one.published
    try:
        source = site.published_folder(one.cell)
        if isinstance(source, Remote) and source.ssh.alias in gone:
            return Outcome(one.cell, FAILED, gone[source.ssh.alias])
        replaced = _fetch(site, one.published, terms, on_bytes)
    except (BoxcarError, OSError) as error:
        if isinstance(error, Unreachable):
            gone[error.alias] = show.typed(message_of(error))
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


def _fetch(site: Site, wanted: Published, terms: Terms, on_bytes: OnBytes) -> Path | None:
    """As fetch_cell does. Of a result that was lent the box may have the manifest alone."""
    try:
        return fetch_cell(site, wanted, terms, on_bytes)
    except (BoxcarError, OSError) as error:
        found = receipt.accepted_result(site.tier, wanted.cell)
        if found is None or not found.is_lent:
            raise
        raise DamagedError(
            _(
                "{cell} changed since it was pulled, and its box, rented anew, has no full copy: "
                "{text}. Restore that folder from a good copy, or else",
                cell=site.results.cell(wanted.cell),
                text=message_of(error).text,
            ),
            Command("down", ("--abandon", wanted.cell, "--because", "…")),
        ) from error


def _read_published(site: Site, cell: str) -> Published | None:
    try:
        return read_published(site, cell)
    except NewerError:
        raise
    except DamagedError as error:
        raise DamagedError(
            _("the manifest on the tier is damaged: {error}", error=error), Command("repair")
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
