"""`invoke pull`: every published cell to the laptop, each file compared with its manifest.

What is already here and right is not fetched again, and a copy that gives way is kept in
`replaced/`. Killed at any point and run again, it ends right. The journals come along: after the
teardown they lie nowhere else.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.hosts import folders
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.ssh_errors import Unreachable
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import launches
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import (
    bring_cell,
    compare,
    results_folder,
    second_home,
)
from boxcar.laptop.results.bring_cell import (
    BroughtLog,
    OnBytes,
    Portion,
    Published,
    Terms,
    fetch_cell,
    read_published,
)
from boxcar.laptop.results.judge import HashedBefore
from boxcar.laptop.results.second_home import Lying
from boxcar.laptop.run import run_journals
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Roster, RosterCell
from boxcar.laptop.run.view import ABANDONED, CellView, RunView
from boxcar.laptop.verbs.next_step import is_settled, next_step
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, checked_copy, tree_sync
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    Message,
    NewerError,
    message_of,
    some,
    words_of,
)
from boxcar.shared.files import journal, receipt
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.state import Succeeded, Synced

# What became of one cell of a pull, or of one journal.


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


# What becomes of each cell of a pull: what is here and right stays, the rest is brought.


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
        hashed.write()
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


# The journals to the laptop: after the teardown they lie nowhere else.


def pull_journals(site: Site) -> list[Outcome]:
    journals = sorted(site.tier.journals.glob("*.jsonl"))
    return [_pull_journal(site, path) for path in journals]


def pull_grown_journals(site: Site) -> None:
    """Those of which the copy here is the beginning, or that have no copy yet."""
    for path in sorted(site.tier.journals.glob("*.jsonl")):
        with contextlib.suppress(OSError):
            here = site.results.journals / path.name
            if not here.exists() or path.read_bytes().startswith(here.read_bytes()):
                _pull_journal(site, path)


def _pull_journal(site: Site, source: Path) -> Outcome:
    """A checked copy of what the journal holds now. A damaged one comes too where there is no copy
    yet, and is said.
    """
    here = site.results.journals / source.name
    try:
        compare.refuse_link(source.parent, source.name)
        atomic.make_folder(here.parent)
        if here.exists():
            # What is here may be the only good copy: repair puts it back.
            run_journals.read_whole_journal(site, source.stem)
            data, kept = source.read_bytes(), here.read_bytes()
            if data == kept:  # each line of it was read just now, with its check
                return Outcome(source.name, PULLED, None, len(kept))
            # A run that was launched anew begins its journal anew; the old one is kept.
            if not data.startswith(kept):
                results_folder.set_aside(site.results, here)
        copied = checked_copy.checked_copy(source, here, source.name)
        journal.read_journal(here)
    except (BoxcarError, OSError) as error:
        return Outcome(source.name, FAILED, show.typed(message_of(error)))
    return Outcome(source.name, PULLED, None, copied.size_bytes)


def pull_gauges(site: Site, boxes: Sequence[str] = ()) -> None:
    """What the boxes had left, minute by minute. Nothing is decided by it, so a tier of an older
    agent, which has none, is no news, and what cannot come is only said.
    """
    on_tier = str(site.project.on_tier.gauges_folder)
    for box in boxes or dict.fromkeys(box.name for box in site.plan.boxes):
        if site.is_out_of_reach(box):
            continue
        try:
            folders.fetch_folder(site.folder_on(box, on_tier), site.results.gauges)
        except (BoxcarError, OSError) as error:
            if not _NOT_THERE.search(str(error)):
                show.say(_("{box}: its gauges did not come: {why}", box=box, why=words_of(error)))
        if site.plan.durable_scope != EACH_BOX:
            return


_NOT_THERE = re.compile(r"No such file or directory|no such folder")
MOST_NAMED = 5


def pull(
    project: Project,
    *,
    cells: Sequence[str] | None = None,
    most_kib_s: int = 0,
    source: str = "",
    as_json: bool = False,
) -> int:
    """Bring the results here, or only those of `cells`; of a platform without ssh from `source`,
    the folder that a person downloaded.

    Returns 1 where something that is published could not be pulled right, or one of `cells` is not
    published; what else is not published yet is for `status` and `verify` to judge. Raises
    InputError for an unknown cell, and where the tier or rsync is missing.
    """
    with open_site(project, show.say) as site:
        if source:
            with show.waiting(_("taking over {folder}", folder=source)):
                site.bring(Path(source))
        folders.check_rsync(show.say, most_kib_s=most_kib_s)
        with show.waiting(_("asking the boxes")):
            site.refresh()
        _check_tier(site)
        view = look_at_run(site, timestamp.utc_now())
        wanted = _wanted(site.plan.run, view.roster, cells)
        said = (*view.roster.sentences, *map(Message, site.doubts()))
        show.say_of_each(("", one) for one in said)
        with results_folder.hold(site) as held:
            with show.progress(_("pull")) as bar:
                outcomes = pull_cells(site, view, wanted, held, bar, most_kib_s=most_kib_s)
                journals = pull_journals(site)
                pull_gauges(site)
            copies = _pull_second_home(site, view, outcomes)
            outcomes = [copies.get(one.name, one) for one in outcomes]
            missing = {one.name for one in outcomes if one.word not in (HERE, PULLED)}
            with show.waiting(_("fetching the logs of failed cells")):
                logs = _pull_failed_logs(site, view, missing)
        # Not above: a bar that is drawn leaves its line behind.
        show.say_of_each((log.cell, _said_of(log)) for log in logs)
        given_up = {one.name for one in view.of_words((ABANDONED,))}
        unsaid = given_up & {one.name for one in outcomes if one.word == NOT_PUBLISHED}
        told = [one for one in outcomes if one.name not in unsaid]
        _report(told, journals, {log.cell for log in logs})
        show.say(_next(site, view, told, journals))
        if as_json:
            results = {"run": site.plan.run, "results": str(site.results.root)}
            show.json_document("pull", results | {"cells": outcomes, "journals": journals})
        is_asked_for = cells and missing
        all_outcomes = (*outcomes, *journals)
        has_failed = any(outcome.word == FAILED or outcome.lacks for outcome in all_outcomes)
        return 1 if has_failed or is_asked_for else 0


def _check_tier(site: Site) -> None:
    if site.tier.root.is_dir() or second_home.is_needed(site):
        return
    if results_folder.is_torn_down(site.results):
        raise InputError(
            _(
                "nothing to pull: the run was torn down, and its results are here ({folder})",
                folder=site.results.root,
            )
        )
    tier = site.plan.durable_dir
    if (site.results.root / launches.LAUNCHES).exists():
        not_there = _("nothing to pull: the durable tier ({tier}) is not mounted", tier=tier)
        raise InputError(not_there, Command("pull"))
    raise InputError(
        _(
            "nothing to pull: the run was never launched from this machine, and its durable tier "
            "({tier}) is not here",
            tier=tier,
        ),
        Command("launch"),
    )


def _wanted(run: str, found: Roster, names: Sequence[str] | None) -> list[RosterCell]:
    """Of a cell that was dropped there will be nothing, unless somebody asks for it by name."""
    known = [cell.name for cell in found.cells]
    if chosen := frozenset(pick(names or (), known, what="cell", of=the_run(run))):
        return [cell for cell in found.cells if cell.name in chosen]
    if dropped := [cell.name for cell in found.cells if cell.is_dropped]:
        show.say(_("dropped, so not pulled: {cells}", cells=some(dropped, MOST_NAMED)))
    return [cell for cell in found.cells if not cell.is_dropped]


def _still_checked(view: RunView) -> list[str]:
    """The cells whose boxes are about to say whether what they published loads."""
    at_work = {queue.name for queue in view.queues if may_run(queue)}
    checked = (Succeeded.word, Synced.word)
    return [cell.name for cell in view.cells if cell.word in checked and cell.queue in at_work]


def _pull_failed_logs(site: Site, view: RunView, cells: Collection[str]) -> list[BroughtLog]:
    failed = [cell for cell in view.cells if cell.name in view.failed and cell.name in cells]
    return bring_cell.pull_failed_logs(site, failed)


def _pull_second_home(site: Site, view: RunView, outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """By cell, what became of those that could not be had and may be there; mostly none."""
    lacking = [one for one in outcomes if one.word in (NOT_PUBLISHED, FAILED)]
    if not lacking or not second_home.is_needed(site):
        return {}
    cells = {cell.name: cell for cell in view.cells}
    with show.waiting(_("checking the second copy at {url}", url=site.plan.second)):
        try:
            found = second_home.look_into_second_home(site, [one.name for one in lacking])
        except (BoxcarError, OSError) as error:
            why = _(
                "the second copy could not be checked: {show}", show=show.typed(message_of(error))
            )
            return {one.name: replace(one, word=FAILED, why=why) for one in lacking}
        return {
            one.name: _from_second(site, cells[one.name], found[one.name], one)
            for one in lacking
            if one.name in found
        }


def _from_second(site: Site, cell: CellView, lying: Lying, before: Outcome) -> Outcome:
    """What became of a cell of which the second home has something."""
    second = site.plan.second
    if lying.problem:
        return Outcome(cell.name, FAILED, f"{second}: {lying.problem}")
    try:
        if wanted := lying.published:
            aside = second_home.bring_result(site, cell, wanted)
            replaced = str(aside) if aside else None
            why, left = _("from the second copy at {url}", url=second), lacks_cells(site, wanted)
            made = wanted.manifest
            return Outcome(cell.name, PULLED, why, made.size_bytes, replaced, left, made.doubt)
        pointer = lying.pointer
        if pointer and second_home.bring_live_checkpoint(site, cell, pointer):
            about = {"cell": cell.name, "at": pointer.at, "url": second}
            show.say(
                Message(
                    _(
                        "{cell}: pulled its checkpoint of {at} from the second copy at {url}. Next",
                        **about,
                    ),
                    Command("launch"),
                )
            )
    except (BoxcarError, OSError) as error:
        return Outcome(cell.name, FAILED, show.typed(message_of(error)))
    return before


def _said_of(log: BroughtLog) -> str:
    if log.path is None:
        return _("failed; its log could not be pulled: {why}", why=log.problem)
    return _("failed; {cells:its log|their logs, such as}: {file}", file=log.path, cells=1)


def _notes_of(outcome: Outcome) -> Iterator[str]:
    if outcome.replaced:
        yield _("the earlier copy was moved to {folder}", folder=outcome.replaced)
    if outcome.word == PULLED and outcome.why:
        yield _("pulled {why}", why=outcome.why)
    if outcome.lacks:
        names, n = some(outcome.lacks, MOST_NAMED), len(outcome.lacks)
        yield _("{n:,} extra {n:file|files} missing or not as published: {names}", n=n, names=names)
    if outcome.doubt:
        yield _("not certain: {doubt}", doubt=outcome.doubt)


def _next(
    site: Site, view: RunView, outcomes: Sequence[Outcome], journals: Sequence[Outcome]
) -> Message:
    """How much is here, and what to type."""
    there = {one.name for one in outcomes if one.word in (HERE, PULLED)}
    here_now = _(
        "{here} of {n} {n:cell|cells} here: {folder}",
        here=len(there),
        n=len(outcomes),
        folder=site.results.root,
    )
    has_failed = any(one.word == FAILED for one in (*outcomes, *journals))
    checked = [name for name in _still_checked(view) if name in there]
    wanted = {one.name for one in outcomes} - there
    failed = sorted(wanted & {cell.name for cell in view.of_words(("failed",))})
    if not (wanted or has_failed or checked):
        proven = next_step(view, site).command if is_settled(view, site) else None
        then = proven or Command("verify")
        return Message(_("{here}. Next", here=here_now), then)
    if not (wanted or has_failed):
        names = some(checked, MOST_NAMED)
        said = _(
            "{here}; {n} {n:is still being checked by its box|are still being checked by their "
            "boxes}: {cells}. In a moment",
            here=here_now,
            n=len(checked),
            cells=names,
        )
        return Message(said, Command("pull"))
    if failed:
        explain = Command("explain", ("--cell", failed[0]))
        return Message(
            _("{here}; {n} {n:cell|cells} failed. Why", here=here_now, n=len(failed)), explain
        )
    if has_failed:
        return Message(here_now)
    return Message(
        _("{here}; the others are not published yet. To see why", here=here_now), Command("status")
    )


def _by_reason(outcomes: Iterable[Outcome]) -> dict[str | None, list[str]]:
    """What was not pulled: one reason may be that of hundreds."""
    found: dict[str | None, list[str]] = {}
    for one in outcomes:
        if one.word == FAILED:
            found.setdefault(one.why, []).append(one.name)
    return found


def _report(
    outcomes: Sequence[Outcome], journals: Sequence[Outcome], failed: Collection[str]
) -> None:
    """`failed`: of these it was said already."""
    everything = (*outcomes, *journals)
    show.say_of_each((one.name, note) for one in everything for note in _notes_of(one))
    for why, names in _by_reason(everything).items():
        name = some(names, MOST_NAMED)
        show.say(_("{name} {n:was|were} not pulled: {why}", name=name, n=len(names), why=why))
    missing = [outcome.name for outcome in outcomes if outcome.word == NOT_PUBLISHED]
    if missing := [name for name in missing if name not in failed]:
        show.say(_("not published yet: {cells}", cells=show.listed(missing)))
