"""The one command that brings a run on, decided from the view of it and from the results here."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from boxcar.laptop.common import show
from boxcar.laptop.common.home import Home
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import cell_faults
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import compare
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.run.view import (
    ABANDONED,
    DAMAGED,
    DROPPED,
    Blocked,
    CellView,
    QueueView,
    RunView,
    blocked_of_run,
)
from boxcar.laptop.teardown import meters
from boxcar.laptop.tryout import passes
from boxcar.shared import names
from boxcar.shared.errors import Command, DamagedError, Message, some
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.plan import Plan
from boxcar.shared.files.receipt import RunReceipt
from boxcar.shared.paths import ResultPaths
from boxcar.shared.process import end_reason
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

_MOST_NAMED = 5
# A queue's condition, the verb to type, and why; the worst comes first.
_TROUBLES = (
    (
        "damaged",
        "repair",
        mark(
            "the event {n:log|logs} of {queues} {n:is|are} damaged; repair "
            "{n:it|them} before anything else"
        ),
    ),
    (
        "unknown",
        "status",
        mark("{queues} cannot be read right now; look again before you decide anything"),
    ),
    (
        "unreachable",
        "status",
        mark(
            "{queues} {n:is|are} unreachable, but may still be running. Look again later; of "
            "rented boxes, check the console (balance, power, a new port)"
        ),
    ),
    (
        "held",
        "status",
        mark("{queues} {n:is|are} held by the scheduler; see the reason above"),
    ),
    (
        "trainer dead",
        "stop",
        mark("{queues} {n:has|have} no training process left: stop {n:it|them}, then launch again"),
    ),
    (
        "agent dead",
        "launch",
        mark("{queues} {n:has|have} no agent; launch resumes {n:it|them}"),
    ),
    (
        "no room",
        "watch",
        mark(
            "{queues} {n:waits|wait} for space on a full disk; free some, and {n:it "
            "continues|they continue}"
        ),
    ),
)
_OVER = (DAMAGED, DROPPED, ABANDONED)


@dataclass(frozen=True)
class NextStep:
    """What to type next, or None where nothing is left to do; and why."""

    command: Command | None
    because: str | Message


def next_step(view: RunView, site: Site) -> NextStep:
    """The one command that brings the run on, from the view and from the results here."""
    results = site.results
    if is_over(site):
        if still_open := meters.open_meters_of(site.project, results):
            because = _(
                "ours is done, yours is open: {n} {n:box|boxes} may still bill. Type it once the "
                "console shows {n:it|them} ended",
                n=len(still_open),
            )
            return NextStep(meters.seen_off_command(still_open), because)
        return NextStep(
            None, _("the run was torn down; its results are in {folder}", folder=results.root)
        )
    step = _next_for_queues(view, site) or _next_for_results(view, site)
    if step.command == Command("launch") and not has_begun(view):
        step = NextStep(before_launch(site.project, needs_audit=site.needs_audit), step.because)
    if step.command and step.command.verb == "launch":
        step = NextStep(site.launch_command or step.command, step.because)
    problems = (*site.project.doubts, *site.project.faults)
    return _after_a_fix(step, problems) if problems else step


def has_begun(view: RunView) -> bool:
    """Whether any agent of it was ever at work, as far as can be known."""
    return any(queue.session or queue.is_alive is not False for queue in view.queues)


def before_launch(project: Project, *, needs_audit: bool) -> Command:
    """What a run that was never launched needs first. Boxes that were met once are not proposed for
    an audit again: `launch` has one of its own.
    """
    if cell_faults.is_smoke_given(project.job) and passes.missing(project):
        return Command("smoke")
    home = Home(project.root)
    is_met = any(home.host(box).exists() for box in project.plan.queues.values())
    return Command("audit" if needs_audit and not is_met else "launch")


def _after_a_fix(step: NextStep, problems: Sequence[Message]) -> NextStep:
    """What is refused while the local files are wrong is no next step: `plan` lists all of it."""
    if step.command is None or step.command.verb not in ("launch", "push"):
        return step
    first = _("fix the local files first: {problem}. Then", problem=problems[0].text)
    return NextStep(Command("plan"), Message(first, step.command))


def sentence(step: NextStep) -> Sentence:
    because = show.typed(step.because)
    if step.command is None:
        return _("next: {because}", because=because)
    return _("next: {command}  ({because})", command=show.typed(step.command), because=because)


def _next_for_queues(view: RunView, site: Site) -> NextStep | None:
    words = {queue.name: queue.condition.word for queue in view.queues}
    at_work = _with_work(view, site.plan)
    for trouble, verb, because in _TROUBLES:
        named = [name for name, word in words.items() if word == trouble]
        if trouble == "agent dead":
            named = [name for name in named if name in at_work]
        if named:
            return NextStep(Command(verb), Sentence(because, queues=", ".join(named), n=len(named)))
    ended = [queue.name for queue in view.queues if _was_ended(queue)]
    if named := [name for name in ended if name in at_work]:
        because = _(
            "{queues} {n:was|were} ended by the system; launch resumes {n:it|them}",
            queues=", ".join(named),
            n=len(named),
        )
        return NextStep(Command("launch"), because)
    if any(queue.is_alive or queue.scheduled for queue in view.queues):
        return NextStep(Command("watch"), _while_at_work(view))
    if spent := [one.name for one in view.queues if _is_budget_spent(one) and one.name in at_work]:
        return NextStep(Command("cost"), _budget_is_spent(spent))
    # Before a launch: nothing can be put back while an agent is at work.
    if damaged := _damaged(view):
        return NextStep(Command("repair"), _are_damaged(damaged))
    doubtful = {cell.name for cell in view.roster.cells if cell.doubt}
    unfinished = [
        cell
        for cell in view.of_words(view.by_word.keys() - {"verified", "failed", *_OVER})
        if cell.name not in doubtful
    ]
    if not unfinished or is_settled(view, site):
        return None
    found = blocked_of_run(view)
    if all(cell.name in found for cell in unfinished):
        kept = [found[cell.name] for cell in unfinished]
        return NextStep(kept[0].command, _are_blocked(kept))
    if all(_is_unfit(view, cell) for cell in unfinished):
        return NextStep(None, _are_unfit(unfinished))
    if _are_above(view, unfinished):
        again = Command("launch", ("--start-index", "0"))
        return NextStep(
            again,
            _(
                "{n} {n:cell|cells} skipped, above the queue's starting point",
                n=len(unfinished),
            ),
        )
    return NextStep(Command("launch"), _("{n} {n:cell|cells} not finished", n=len(unfinished)))


def _are_blocked(kept: Sequence[Blocked]) -> Sentence:
    return _(
        "{n} {n:cell waits|cells wait} for {by}, which {why}; launch alone does not start "
        "{n:it|them}",
        n=len(kept),
        by=kept[0].by,
        why=kept[0].why,
    )


def _is_unfit(view: RunView, cell: CellView) -> bool:
    """Whether each box that may take it has said that it cannot run it."""
    sessions = [queue.session for queue in view.queues_of(cell)]
    return bool(sessions) and all(one and cell.name in one.unfit for one in sessions)


def _are_unfit(cells: Sequence[CellView]) -> Sentence:
    return _(
        "{cells} {n:needs|need} more GPUs than any box of this run has. Put # before {n:its "
        "line|their lines} and append {n:it|them} with a smaller gpus=, then launch",
        cells=some([cell.name for cell in cells], _MOST_NAMED),
        n=len(cells),
    )


def _with_work(view: RunView, plan: Plan) -> set[str]:
    """The queues that have a cell left, were they without an agent: all of one may have been moved,
    or dropped. What no member of a pool has claimed is for those of the plan.
    """
    left = view.of_words(view.by_word.keys() - {"verified", *_OVER})
    files = {names.file_of(cell.queue) for cell in view.cells}
    empty = {queue.name for queue in view.queues if names.file_of(queue.name) not in files}
    claimed = {cell.queue for cell in left}
    others = (one.name for cell in left for one in view.queues_of(cell) if one.name in plan.queues)
    return {*empty, *claimed, *others}


def _was_ended(queue: QueueView) -> bool:
    """Whether nobody has asked for its end, and nobody starts it again: a job that was cancelled
    beside others that run.
    """
    by = queue.session.by if queue.session else None
    return queue.condition.word == "stopped" and by == end_reason.SIGNAL


def _is_budget_spent(queue: QueueView) -> bool:
    return queue.session is not None and queue.session.by == end_reason.BUDGET


def _budget_is_spent(queues: Sequence[str]) -> Sentence:
    """To launch alone would begin no cell."""
    return _(
        "{queues} ended because the budget is spent. Raise `budget:` in the job file and launch, "
        "or pull what is there and end the boxes",
        queues=", ".join(queues),
    )


def _are_above(view: RunView, cells: Sequence[CellView]) -> bool:
    """Whether the agents of their queues have skipped them, because they were told where to
    begin.
    """
    index = {cell.name: cell.index for cell in view.cells}
    begins: dict[str, float] = {}
    for queue in view.queues:
        if queue.session and (first := queue.session.start_cell):
            begins[queue.name] = index.get(first) or 0
        elif queue.session and queue.session.start_index:
            begins[queue.name] = math.inf  # below its last line

    def is_above(cell: CellView) -> bool:
        ends = [begins.get(queue.name, 0) for queue in view.queues_of(cell)]
        return cell.index is not None and cell.index < min(ends, default=0)

    return all(map(is_above, cells))


def _damaged(view: RunView) -> list[str]:
    """The cells whose result is not on the tier as it was, but for those that were given up."""
    return [cell.name for cell in view.of_words((DAMAGED,))]


def _are_damaged(cells: list[str]) -> Sentence:
    if len(cells) == 1:
        return _("the result of {cell} on the durable tier is not as published", cell=cells[0])
    return _("the results of {n} cells on the durable tier are not as published", n=len(cells))


def _while_at_work(view: RunView) -> Message:
    if damaged := _damaged(view):
        then = _(
            "agents are running; {damaged}. When they have ended", damaged=_are_damaged(damaged)
        )
        return Message(then, Command("repair"))
    is_at_work, failed = any(queue.is_alive for queue in view.queues), _failed(view)
    if not failed:
        return Message(
            _("agents are running; nothing to do")
            if is_at_work
            else _("the scheduler will start the pending jobs; nothing to do")
        )
    n = len(failed)
    said = _("the scheduler will start the pending jobs; {n} {n:cell|cells} failed", n=n)
    said = _("agents are running; {n} {n:cell|cells} failed", n=n) if is_at_work else said
    return Message(said, _explain(failed[0]))


def _failed(view: RunView) -> list[str]:
    return [cell.name for cell in view.of_words(("failed",))]


def _next_for_results(view: RunView, site: Site) -> NextStep:
    results = site.results
    if doubts := view.roster.doubts:
        return NextStep(
            Command("verify"),
            _("to be resolved before the teardown: {doubt}", doubt=doubts[0].what),
        )
    if is_settled(view, site):
        if stale := compare.beside_the_manifests(site, view.roster.cells):
            return NextStep(Command("pull"), stale[0].what)
        return NextStep(
            Command("down"),
            _("every cell is verified, dropped or abandoned; the boxes can go once you approve"),
        )
    if lost := [cell.doubt for cell in view.roster.cells if cell.doubt]:
        return _for_lost(lost[0])
    if missing := _missing_here(view, results):
        return NextStep(Command("pull"), _to_pull(missing, _failed(view)))
    if failed := _failed(view):
        return NextStep(_explain(failed[0]), _("{n} {n:cell|cells} failed", n=len(failed)))
    return NextStep(Command("verify"), _("every cell is here; check that all of them load"))


def _for_lost(doubt: Missing) -> NextStep:
    head = str(doubt.cell)
    if isinstance(doubt.command, Command):
        return NextStep(doubt.command, Message(doubt.what).under(head))
    return NextStep(Command("verify"), doubt.message.under(head))


def _to_pull(verified: int, failed: Sequence[str]) -> Message:
    if not failed:
        return Message(_("{n} verified {n:cell|cells} to pull", n=verified))
    both = _(
        "{n} verified {n:cell|cells} to pull; {failed} {failed:cell|cells} failed",
        n=verified,
        failed=len(failed),
    )
    return Message(both, _explain(failed[0]))


def _explain(cell: str) -> Command:
    return Command("explain", ("--cell", cell))


def _missing_here(view: RunView, results: ResultPaths) -> int:
    """How many verified cells are. Before the first pull no folder of them is asked for."""
    try:
        with os.scandir(results.cells) as found:
            here = {entry.name for entry in found}
    except OSError:
        here = set()
    return sum(
        is_missing_here(cell, results) if cell.name in here else cell.verified_sha256 is not None
        for cell in view.cells
    )


def is_missing_here(cell: CellView, results: ResultPaths) -> bool:
    """Whether a verified cell does not lie in the results. Others have nothing to be pulled."""
    sha256 = cell.verified_sha256
    try:
        return sha256 is not None and manifest.sha256(results.manifest(cell.name)) != sha256
    except OSError:
        return True


def is_settled(view: RunView, site: Site) -> bool:
    """Whether the receipt speaks of this roster and these manifests, and leaves nothing open."""
    try:
        found = receipt.read_run(site.results.receipt)
    except (OSError, DamagedError):  # verify makes it anew
        return False
    return _settles(found, {cell.name: _published_sha256(cell, site) for cell in view.cells})


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
