"""`invoke move`: one cell that waits, or whose box is dead or stopped, is given to another queue.

The claim first, then the checkpoint where it is within reach, then the lines. Killed in between,
the same command goes on. Where each box has its own tier, the old one is told when it is met again.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.common import show
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queues import rewrite
from boxcar.laptop.project.queues.sync import complete, read_tier_queue
from boxcar.laptop.results.lend import lend_checkpoint
from boxcar.laptop.run import moves
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.moves import Move
from boxcar.laptop.run.view import DAMAGED, CellView, RunView
from boxcar.laptop.teardown.gate import reasons_to_give_up
from boxcar.laptop.verbs import push, serve_tier
from boxcar.laptop.verbs.logs import find
from boxcar.laptop.verbs.next_step import has_begun
from boxcar.shared import names, state, timestamp
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.files import queue_line
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks


def move(
    project: Project,
    *,
    cell: str,
    queue: str,
    gone: Sequence[str] = (),
    because: str | None = None,
    as_json: bool = False,
) -> int:
    """Give the cell to the queue. `gone` names boxes that will never answer again, as for `down`.

    Raises InputError where the cell's box may be at work on it, or it cannot be moved.
    """
    with open_site(project, show.say) as site:
        reasons_to_give_up((), gone, because)
        push.refuse_a_finished_run(project)
        if project.doubts:
            raise InputError(project.doubts)
        pick([queue], project.plan.queues, what="queue", of=the_run(project.plan.run))
        with show.waiting(_("asking the boxes")):
            site.refresh()
        site.give_up_boxes(gone)
        push.check_queues(site)
        view = look_at_run(site, timestamp.utc_now())
        found = find(view, cell)
        source, file = _queue_with_line(project, cell), names.file_of(queue)
        _refuse_needless(site, view, found, source, queue)
        if found.queue != queue:
            _refuse_settled(site, found)
            if found.box:  # else nobody of its pool has it yet
                _refuse_at_work(site, view, found)
        for one in _moves(site, found, queue):
            take_claim(site, one)
        if site.plan.durable_scope == EACH_BOX:
            with show.progress(_("push")) as bar:
                for text in lend_checkpoint(site, queue, cell, bar):
                    show.say(text)
        if source != file:
            move_line(project, cell, source, file)
        send_lines(site, source, file)
        _report(site, cell, source, queue, as_json=as_json)
        return 0


def _refuse_needless(site: Site, view: RunView, found: CellView, source: str, queue: str) -> None:
    """Before any launch, and where it is there already; a move that was broken off goes on."""
    if not has_begun(view):
        raise InputError(
            _(
                "{run} was never launched: move the line of {cell} by hand",
                run=view.run,
                cell=found.name,
            )
        )
    is_there = found.queue == queue and source == names.file_of(queue)
    is_there = is_there and not _moves(site, found, queue)
    local = complete(site.project.queue_files[names.file_of(queue)].read_bytes())
    if is_there and read_tier_queue(site.tier.queue(queue)) == local:
        raise InputError(_("{cell} is already in {queue}", cell=found.name, queue=queue))


def _queue_with_line(project: Project, cell: str) -> str:
    for name, path in project.queue_files.items():
        if any(
            line.name == cell for line in queue_line.parse_queue(complete(path.read_bytes())).cells
        ):
            return name
    raise InputError(
        _(
            "{cell}: no local queue file has its line; copy it from the durable tier first. To "
            "see what is there",
            cell=cell,
        ),
        Command("push"),
    )


# --- whose it is


def _moves(site: Site, cell: CellView, queue: str) -> list[Move]:
    """The one that is to be made; also one that was begun, of which a box has not heard."""
    if cell.queue != queue:
        claim = Claim(
            cell.name, queue, site.plan.queues[queue], timestamp.utc_now(), moved_from=cell.queue
        )
        return [Move(claim, cell.queue, cell.box)]
    begun = [known for known in moves.read_moves(site.results) if not known.is_told]
    return [one for one in begun if (one.claim.cell, one.claim.queue) == (cell.name, queue)]


def take_claim(site: Site, wanted: Move) -> None:
    """The claim, once nobody can be at work on the cell any more."""
    new_box = wanted.claim.box
    if site.plan.durable_scope != EACH_BOX:
        others = (box.name for box in site.plan.boxes if box.name != new_box)
        reader = site.reach_tiers([new_box, *others])[0]
        site.ask(reader, run_asks.MoveClaim(wanted.claim, wanted.queue_before, is_told=False))
        moves.boxes_told(site.results, wanted)
        return
    moves.keep_moves(site.results, wanted)
    if not site.is_out_of_reach(wanted.box_before):
        _tell_old_box(site, wanted)
    site.ask(new_box, run_asks.MoveClaim(wanted.claim, wanted.queue_before, is_told=True))


def _tell_old_box(site: Site, wanted: Move) -> None:
    """Its own lock shows once more that nobody works there."""
    question = run_asks.MoveClaim(wanted.claim, wanted.queue_before, is_told=False)
    try:
        site.ask(wanted.box_before, question)
    except InputError:
        moves.drop_move(site.results, wanted)
        raise
    moves.boxes_told(site.results, wanted)


def _refuse_settled(site: Site, cell: CellView) -> None:
    if site.tier.manifest(cell.name).exists() or cell.word in ("synced", "verified", DAMAGED):
        raise InputError(
            _("{cell} is already published; there is nothing to move", cell=cell.name),
            Command("pull"),
        )
    if cell.is_dropped:
        raise InputError(
            _("{cell} was dropped. To run it, append its line to a queue", cell=cell.name)
        )


def _refuse_at_work(site: Site, view: RunView, cell: CellView) -> None:
    """Doubt counts as somebody at work: two boxes would train the cell. Of one that waits in the
    queue of an agent that lives, the claim decides, which one of the two queues gets.
    """
    box, queue = cell.box, cell.queue
    agent = site.is_agent_alive(queue)
    attempt = site.is_attempt_alive(box, cell.name)
    if attempt is False and (agent is False or (agent and _is_waiting(cell))):
        return
    if agent or attempt:
        agents = _("the agent of {queue}", queue=queue)
        who = agents if agent else _("an attempt at {cell}", cell=cell.name)
        raise InputError(
            _(
                "{who} is running on {box}, so {cell} was not moved. Stop it first",
                who=who,
                box=box,
                cell=cell.name,
            ),
            Command("stop", ("--queue", queue)),
        )
    words = ("--cell", cell.name, "--queue", "QUEUE", "--gone", box, "--because", "…")
    raise InputError(
        _(
            "{box} does not answer and may still be running {queue}, so {cell} was not moved. "
            "Look again",
            box=box,
            queue=queue,
            cell=cell.name,
        ),
        Command("status", or_else=Command("move", words, note=_("only if it is gone for good"))),
    )


def _is_waiting(cell: CellView) -> bool:
    return cell.record is not None and isinstance(cell.record.state, state.Queued)


# --- its line


def move_line(project: Project, cell: str, source: str, queue: str) -> None:
    """Behind a `#` in the file that had it, and at the end of the other: both, or as it was."""
    old, new = project.queue_files[source].resolve(), project.queue_files[queue].resolve()
    there, here = complete(old.read_bytes()), complete(new.read_bytes())
    lines = there.split(b"\n")
    at = next(line.number for line in queue_line.parse_queue(there).cells if line.name == cell) - 1
    line, lines[at] = lines[at], b"# " + lines[at]
    rewrite.write_queue(project.root, {old: b"\n".join(lines), new: here + line + b"\n"})


def send_lines(site: Site, source: str, queue: str) -> None:
    """A box that is gone has a tier of its own, and nobody reads its lines any more."""
    is_shared = site.plan.durable_scope != EACH_BOX
    with show.progress(_("push")) as bar:
        for name in dict.fromkeys((queue, source)):
            if is_shared or not site.is_out_of_reach(site.plan.queues[name]):
                serve_tier.send_queue(site, name, bar)


def _report(site: Site, cell: str, source: str, queue: str, *, as_json: bool) -> None:
    site.refresh()
    view = look_at_run(site, timestamp.utc_now())
    if as_json:
        show.json_document("move", {"cell": cell, "from": source, "to": queue})
    said = [text for text in view.problems if text.startswith(f"{cell}: moved from ")]
    show.say(said[0] if said else _("{cell} is in {queue}", cell=cell, queue=queue))
    for text in moves.untold(site):
        show.say(text)
    if not view.queue(queue).is_alive:
        show.say(Message(_("To run it"), Command("launch", ("--box", site.plan.queues[queue]))))
