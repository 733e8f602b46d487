"""`invoke runs`: every run that this person launched from this machine, as it was last seen.

No box is asked: what stands here is as of the last verb that asked, and the column says when.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import home, show
from boxcar.laptop.common.home import Home, KnownRun
from boxcar.laptop.places.open_site import SITES, open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import launches
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.results.results_folder import is_torn_down
from boxcar.laptop.run.look import look_at_run, view_of_journals
from boxcar.laptop.run.run_cost import amounts
from boxcar.laptop.run.view import ABANDONED, DROPPED, RunView
from boxcar.laptop.teardown.countdowns import near_countdowns
from boxcar.laptop.teardown.meters import OpenMeter, meter_rows, open_meters_of
from boxcar.laptop.verbs.spending import money_of_site
from boxcar.laptop.view.run_rows import nearest_clock
from boxcar.shared import timestamp
from boxcar.shared.errors import BoxcarError, Command, DamagedError, InputError, Message, message_of
from boxcar.shared.files import receipt, release
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, known_word, mark

LOCAL = "local"
COLUMNS = (
    *("run", "state", _("cells"), "boxes", "spent", "clock"),
    *("profile", "launched", "seen", "job"),
)
# Absent where no run has anything to say.
_MAY_LACK = ("spent", "clock", "seen")


@dataclass(frozen=True)
class SeenRun:
    """One run as it stands here. `cells` counts them by their state; `seen_at`: the oldest answer
    of a box, None where that is not kept. `spent`: by currency, from typed prices; `clock`: what
    runs out next. `problem`: why nothing else is known. `job_is_now`: the run that its job file
    names by now, where that is another. `open_meters`: of boxes that were ended, and of which
    nobody saw that they bill no more.
    """

    run: str
    job: str
    profile: str
    launched_at: str
    state: str
    boxes: tuple[str, ...] = ()
    cells: dict[str, int] | None = None
    seen_at: str | None = None
    spent: dict[str, float] | None = None
    clock: str | None = None
    problem: str | None = None
    job_is_now: str | None = None
    open_meters: tuple[OpenMeter, ...] = ()


def runs(*, as_json: bool = False) -> int:
    """Returns 1 where a run cannot be read."""
    found = seen_runs()
    if as_json:
        show.json_document("runs", {"runs": found})
    elif found:
        _show(found)
        show.say_of_each([*_problems(found), *_renamed(found)])
        _alarm_of_meters(found)
    else:
        show.say(
            Message(
                _("no run was launched from this machine yet. To launch the first"),
                Command("launch"),
            )
        )
    return 1 if any(one.problem for one in found) else 0


def seen_runs() -> list[SeenRun]:
    """Each as its boxes were last seen; none is asked."""
    return [_seen(one) for one in home.known_runs() if not is_past(one)]


def is_past(one: KnownRun) -> bool:
    """Boxes that were folders of this machine bill nobody once they are removed."""
    return one.profile == LOCAL and not os.path.exists(one.job)  # noqa: PTH110


def _seen(one: KnownRun) -> SeenRun:
    about = SeenRun(one.run, str(one.job), one.profile, one.at, "unknown")
    if not os.path.exists(one.job):  # noqa: PTH110  (a Path raises for one that may not be looked at)
        return replace(
            about,
            state="gone",
            problem=_("{job} no longer exists; its boxes may still be billing", job=one.job),
        )
    try:
        project, now = open_known_run(one.run, one.job, one.profile)
        about = replace(about, job_is_now=None if now == one.run else now)
        with open_site(project, lambda _: None) as site:
            return _of_site(site, about)
    except (BoxcarError, OSError) as error:
        return replace(about, problem=message_of(error).text)


def open_known_run(run: str, job: Path, profile: str) -> tuple[Project, str]:
    """The project of one run, and the run that its job file names by now.

    Raises BoxcarError, OSError.
    """
    project = open_project(job, profile, kinds=SITES, despite_faults=True)
    now = project.plan.run
    return (project if now == run else _as_launched(project, run)), now


def _as_launched(project: Project, run: str) -> Project:
    """An earlier run of a job file that names another by now, as its last launch had it.

    Raises BoxcarError where that is not known here any more, OSError.
    """
    job = project.job.model_copy(update={"name": run})
    plan = replace(project.plan, run=run, cells=())
    known = replace(project, job=job, plan=plan, queue_files={}, doubts=(), faults=())
    digest = launches.newest_release_of(known.results) or "none"
    with open_site(known, lambda _: None) as site:
        folders = (Home(project.root).release(digest), site.tier.release(digest))
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            return replace(known, plan=release.read_plan(folder))
    raise InputError(
        _(
            "{run}: its job file now names {now}. To look at, pull or end {run}, put `name: "
            "{run}` back (in a copy of the file, if you like)",
            run=run,
            now=project.plan.run,
        )
    )


def _of_site(site: Site, about: SeenRun) -> SeenRun:
    boxes = tuple(box.name for box in site.plan.boxes)
    still_open = open_meters_of(site.project, site.results)
    about = replace(about, boxes=boxes, open_meters=still_open)
    if is_torn_down(site.results):
        state = "yours is open" if still_open else "torn down"
        near = near_countdowns(site.project, site.results, timestamp.utc_now())
        about = replace(about, clock=near[0].sentence if near else None)
        past = view_of_journals(site, timestamp.utc_now())
        cells = _cells_of_receipt(site.results)
        return replace(about, state=state, cells=cells, spent=_spent(site, past))
    view = look_at_run(site, timestamp.utc_now())
    cells = Counter(cell.word for cell in view.cells)
    seen = [at for box in boxes if (at := site.seen_at(box))]
    return replace(
        about,
        state="proven here" if _is_proven_here(site.results, view) else state_of(view),
        cells=dict(cells),
        seen_at=min(seen, default=None),
        spent=_spent(site, view),
        clock=nearest_clock(view, is_billed=site.project.profile.meter.is_billed),
    )


def _cells_of_receipt(results: ResultPaths) -> dict[str, int]:
    """As the last `verify` left them: nothing on a box is looked at after the teardown."""
    try:
        cells = receipt.read_run(results.receipt).cells
    except (OSError, DamagedError):
        return {}
    return dict(Counter(_word_of_verdict(one) for one in cells))


def _word_of_verdict(one: receipt.CellVerdict) -> str:
    if one.is_dropped:
        return DROPPED
    if one.because is not None:
        return ABANDONED
    return "verified" if one.is_settled else "missing"


def _spent(site: Site, view: RunView) -> dict[str, float] | None:
    found = money_of_site(site, view)
    return found.so_far if found and found.so_far else None


def _is_proven_here(results: ResultPaths, view: RunView) -> bool:
    """Whether the last `verify` was content with each cell, as it stands now."""
    try:
        seen = receipt.read_run(results.receipt)
    except (OSError, DamagedError):
        return False
    settled = {one.cell: one.manifest_sha256 for one in seen.cells if one.is_settled}
    return seen.is_full and all(
        cell.name in settled and settled[cell.name] == cell.verified_sha256 for cell in view.cells
    )


def state_of(view: RunView) -> str:
    """In two words: what a person has to do with it."""
    words = [cell.word for cell in view.cells if cell.word not in (DROPPED, ABANDONED)]
    if words and all(word == "verified" for word in words):
        return "bring home"
    if any(queue.is_alive for queue in view.queues):
        return "at work"
    return "unfinished"


def _show(found: Sequence[SeenRun]) -> None:
    rows = [_row(one) for one in found]
    kept = [
        at
        for at, name in enumerate(COLUMNS)
        if name not in _MAY_LACK or any(row[at] is not None for row in rows)
    ]
    columns = [COLUMNS[at] for at in kept]
    last = ("launched", "seen", "profile")
    kept_rows = [[row[at] for at in kept] for row in rows]
    show.table("runs", columns, kept_rows, names=("run", "job"), first_to_go=last)


_STATES = (
    mark("bring home"),
    mark("at work"),
    mark("unfinished"),
    mark("proven here"),
    mark("torn down"),
    mark("yours is open"),
    mark("unknown"),
    mark("gone"),
)


def _row(one: SeenRun) -> Sequence[object]:
    cells = _cells(one.cells) if one.cells else None
    return (
        *(
            one.run,
            known_word(one.state, _STATES),
            cells,
            ", ".join(one.boxes),
            amounts(one.spent) if one.spent else None,
            one.clock,
            one.profile,
        ),
        *(one.launched_at[:16], one.seen_at[:16] if one.seen_at else None, one.job),
    )


def _cells(cells: dict[str, int]) -> str:
    """`34 of 400 verified, 1 failed, 2 abandoned`."""
    total = sum(cells.values()) - cells.get(DROPPED, 0)
    text = _("{n} of {total} verified", n=cells.get("verified", 0), total=total)
    if failed := cells.get("failed"):
        text = _("{verified}, {n} failed", verified=text, n=failed)
    if abandoned := cells.get(ABANDONED):
        text = _("{verified}, {n} abandoned", verified=text, n=abandoned)
    return text


def _problems(found: Collection[SeenRun]) -> Iterator[tuple[str, str]]:
    for one in found:
        if one.problem:
            yield "", _("{head}: {text}", head=one.run, text=one.problem)


def _alarm_of_meters(found: Collection[SeenRun]) -> None:
    for one in found:
        of_run = ("--job", one.job, "--profile", one.profile)
        for row in meter_rows(one.open_meters, of_run):
            show.alarm(row.under(one.run))


def _renamed(found: Collection[SeenRun]) -> Iterator[tuple[str, str]]:
    """How its other verbs are reached, while there is something to be done."""
    for one in found:
        if one.job_is_now and one.state != "torn down" and not one.problem:
            yield (
                "",
                _(
                    "{run}: its job file now names {now}. To look at, pull or end {run}, put "
                    "`name: {run}` back (in a copy of the file, if you like)",
                    run=one.run,
                    now=one.job_is_now,
                ),
            )
