"""`invoke down`: the gate, the person's approval, and then the platform's meter-stop verb.

The approval is written down before anything is removed, so a `down` that was killed goes on when it
is run again, without asking, for as long as the results are those that were approved.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.news import from_here
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import launches
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import compare, results_folder
from boxcar.laptop.results.hashed_before import HashedBefore
from boxcar.laptop.run import moves
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.teardown import meters, rotation
from boxcar.laptop.teardown.gate import (
    CONTINUED,
    GIVEN,
    GateFacts,
    Open,
    Steps,
    decide,
    give_up,
    reasons_to_give_up,
    tier_is_gone,
)
from boxcar.laptop.teardown.salvage import save_before_end
from boxcar.laptop.teardown.still_running import find_alive, kept_still
from boxcar.laptop.verbs.approval import with_approval
from boxcar.laptop.verbs.end_meters import end_meters, stopping
from boxcar.laptop.verbs.spending import tell_money
from boxcar.laptop.verbs.verify import cell_facts
from boxcar.shared import timestamp
from boxcar.shared.cell import terms
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import BoxcarError, Command, DamagedError, InputError, Message, words_of
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import RunReceipt, Teardown
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import _

# How often the run's name may be typed.
_TRIES = 3
# Failed cells whose abandon line is shown whole: longer ones fill the screen.
_MOST_NAMED = 8


def down(
    project: Project,
    *,
    abandon: Sequence[str] = (),
    gone: Sequence[str] = (),
    because: str | Sequence[str] | None = None,
    approve: str | None = None,
    rotated: Sequence[str] = (),
    seen_off: Sequence[str] = (),
    verb: str | None = None,
    as_json: bool = False,
) -> int:
    """Tear the run down, if the gate opens. Returns 1 where it does not, with what is missing, and
    75 where all that Boxcar can do was done and a box may still bill.

    `abandon` names cells of the roster that are given up, `because` says why, once or of each; both
    are written into the receipt. `gone` names boxes that will never answer again; they are not
    asked, and stand in the teardown. The durable tier is named by its path; then the results are
    judged by what is here and by what was last seen of it. `approve` is the receipt's digest, or
    its first 12 characters or more; without it the person is asked. `rotated` names credentials
    that were replaced since a box was given up: that is written down, and nothing else is done.
    `seen_off` names boxes whose meter the person saw end. `verb`: `stop` has the provider stop the
    boxes where `down` would destroy them.
    Raises InputError, and what the meter-stop verb raises.
    """
    is_stop = verb == "stop"
    if verb is not None and not is_stop:
        raise InputError(_("--verb {verb}: expected stop, or no --verb at all", verb=verb))
    project = stopping(project) if is_stop else project
    with open_site(project, show.say) as site:
        why = reasons_to_give_up(abandon, gone, because)
        with results_folder.hold(site):
            if rotated:
                return _confirm(site, rotated)
            if seen_off:
                meters.see_off(site.project, site.results, seen_off)
                show.say(_("recorded as seen off: {names}", names=", ".join(seen_off)))
            with show.waiting(_("asking the boxes")):
                site.refresh()
            moves.tell_boxes(site, show.say)
            begun = receipt.read_teardown(site.results.teardown)
            if begun and begun.finished_at:
                return _report(site, begun, (), as_json=as_json, is_stop=is_stop)
            if begun is None and not why and _was_never_launched(site):
                site.clear_unlaunched()
                nothing = Missing(
                    None,
                    _(
                        "never launched, as far as this machine and its boxes know; there is "
                        "nothing to end. To start it"
                    ),
                    Command("launch"),
                )
                return _report(site, None, (nothing,), as_json=as_json)
            given_up = {cell: why[cell] for cell in abandon}
            lost = {name: why[name] for name in gone}
            ended, missing = _through_the_gate(
                site, begun, given_up, lost, approve, tries=1 if as_json else _TRIES
            )
            return _report(site, ended, missing, as_json=as_json, is_stop=is_stop)


def _through_the_gate(
    site: Site,
    begun: Teardown | None,
    given_up: Mapping[str, str],
    gone: dict[str, str],
    approve: str | None,
    *,
    tries: int,
) -> tuple[Teardown | None, Sequence[Missing]]:
    """The teardown as it is now, and what is missing for it."""
    site.give_up_boxes([*gone])
    _say_kept(site, begun, [name for name in gone if name != site.plan.durable_dir])
    _say_uncompared(site)
    hashed = HashedBefore(from_disk=True)
    facts, notes = _look(site, hashed, begun)
    if given_up:
        if not gone:
            _refuse_to_lose(facts, given_up)
        facts = replace(facts, receipt=give_up(site.results, facts, given_up))
        for cell, because in given_up.items():
            abandoned = _("abandoned because {because}", because=because)
            show.say(_("{head}: {text}", head=cell, text=abandoned))

    def look_again() -> tuple[GateFacts, Sequence[str]]:
        hashed.trust()
        return _look(site, hashed, begun)

    facts = with_approval(site, facts, notes, begun, approve, look_again=look_again, tries=tries)
    decision = decide(facts)
    if not isinstance(decision, Open):
        return begun, decision.reasons
    if held := _save_before_end(site, begun):
        return begun, held
    _tell_last_news(site, begun)
    with kept_still(site) as living:
        if living:
            return begun, living
        return _tear_down(site, _begin(site, facts, begun, gone)), ()


def _refuse_to_lose(facts: GateFacts, cells: Collection[str]) -> None:
    """Raise InputError for a result that only waits to be pulled, unless a person says that it is
    to be lost: it may be one that no pull can bring.
    """
    for cell in facts.cells if facts.is_tier_there else ():
        if cell.cell in cells and cell.is_to_pull:
            said = _(
                "{cell}: its result is published, so there is nothing to give up", cell=cell.cell
            )
            if sys.stdin.isatty() and show.ask(
                _("{text}. Lose it anyway? [y/N] ", text=said)
            ).lower() in ("y", "yes"):
                continue
            raise InputError(
                _("{text}. Bring it home", text=said), Command("pull", ("--cell", cell.cell))
            )


def _was_never_launched(site: Site) -> bool:
    """Neither from here, as far as this machine knows, nor from another one, as each box says."""
    is_known_here = (site.results.root / launches.LAUNCHES).exists() or _has_seen_one(site)
    return not (is_known_here or site.tier.root.exists() or site.silent_boxes())


def _has_seen_one(site: Site) -> bool:
    """Whether the receipt, which `verify` also makes of nothing, knows a result or a decision."""
    try:
        verdicts = receipt.read_run(site.results.receipt).cells
    except FileNotFoundError:
        return False
    except (OSError, DamagedError):
        return True
    return any(one.manifest_sha256 or one.because is not None for one in verdicts)


def _save_before_end(site: Site, begun: Teardown | None) -> Sequence[Missing]:
    """What holds a box because it could not be brought here, unless a person says to lose it."""
    view = look_at_run(site, timestamp.utc_now())
    with show.waiting(_("saving the logs and checkpoints of cells without a result")):
        held = tuple(save_before_end(site, view, begun.boxes if begun else ()))
    if not held or not sys.stdin.isatty():
        return held
    for row in held:
        show.say(show.said_of(row.cell or _("the run"), row.message))
    answer = show.ask(_("Lose {n:it|them} with the box? [y/N] ", n=len(held))).lower()
    return () if answer in ("y", "yes") else held


def _tell_last_news(site: Site, begun: Teardown | None) -> None:
    """Before the secrets go by which boxes send it. News never keeps a run from its end."""
    view = look_at_run(site, timestamp.utc_now())
    queues = from_here.queues_with_news(site, view, begun.boxes if begun else ())
    if not queues:
        return
    try:
        with show.waiting(
            _(
                "delivering the last notifications of {n} {n:queue|queues} (up to a minute)",
                n=len(queues),
            )
        ):
            left = from_here.deliver_news(site, queues, os.environ)
    except (BoxcarError, OSError) as error:
        show.say(words_of(error))
        return
    for queue, count in left.items():
        if count:
            show.say(
                _(
                    "{queue}: {n} {n:notification was|notifications were} not delivered; {n:it "
                    "stays|they stay} in its event log",
                    queue=queue,
                    n=count,
                )
            )


def _confirm(site: Site, rotated: Sequence[str]) -> int:
    """Write down what was replaced; 0 also where more is left, which is said."""
    now = rotation.confirm_rotated(site.results, rotated)
    show.say(_("recorded as rotated: {names}", names=", ".join(dict.fromkeys(rotated))))
    for sentence in rotation.rotation_steps(now):
        show.say(sentence)
    return 0


def _say_kept(site: Site, begun: Teardown | None, gone: Sequence[str]) -> None:
    """Nobody can take the secrets off a box that is gone."""
    names = rotation.held_credentials(site.project.job, site.results)
    for box in gone if names else ():
        if not begun or box not in begun.boxes:
            show.say(
                _(
                    "{box} still has the run's credentials. Rotate {names}",
                    box=box,
                    names=", ".join(names),
                )
            )


def _say_uncompared(site: Site) -> None:
    tier = site.plan.durable_dir
    if not site.is_gone(tier):
        return
    with_what = _("their own manifests and the receipt")
    if site.tier.root.exists():
        with_what = _("what the boxes last reported of it")
    show.say(
        _(
            "{tier} is declared gone, so the results here are compared with {with_what} instead",
            tier=tier,
            with_what=with_what,
        )
    )


def _look(
    site: Site, hashed: HashedBefore, begun: Teardown | None
) -> tuple[GateFacts, Sequence[str]]:
    """Everything that the gate wants to know, as it is now, and the roster's notes.

    Every pulled file is hashed, unless `hashed` trusts what it hashed a moment ago.
    """
    view = look_at_run(site, timestamp.utc_now())
    found = view.roster
    receipt_, doubts = _read_receipt(site)
    tier, others = site.plan.durable_dir, site.others_on_boxes(begun)
    fixes = dict.fromkeys(site.tier_doubts(), tier_is_gone(tier))
    facts = GateFacts(
        run=site.plan.run,
        cells=tuple(cell_facts(site, view, hashed.compare_one)),
        artifacts=site.plan.artifacts,
        other_artifacts=terms.other_artifacts(site.plan, [cell.name for cell in found.cells]),
        doubts=(
            *found.doubts,
            *doubts,
            *compare.beside_the_manifests(site, found.cells),
            *(
                Missing(None, problem, fixes.get(problem, site.end_fix))
                for problem in (*site.end_problems(), *others.doubts)
            ),
        ),
        alive=find_alive(site, [cell.name for cell in found.cells]),
        is_tier_there=site.tier.root.exists(),
        receipt=receipt_,
        approval=None,
        tier=tier,
        is_tier_gone=site.is_gone(tier),
        beside=others.runs,
        verb=site.project.profile.meter_stop.verb,
        to_destroy=site.to_destroy(begun),
    )
    return facts, (*found.notes, *others.strangers)


def _read_receipt(site: Site) -> tuple[RunReceipt | None, list[Missing]]:
    try:
        return receipt.read_run(site.results.receipt), []
    except FileNotFoundError:
        return None, []
    except (OSError, DamagedError) as error:
        return None, [Missing(None, words_of(error), Command("verify"))]


def _begin(site: Site, facts: GateFacts, begun: Teardown | None, gone: dict[str, str]) -> Teardown:
    """The approval of this teardown, or the one that is continued."""
    assert facts.receipt and facts.approval
    credentials = rotation.held_credentials(site.project.job, site.results)
    boxes = [name for name in gone if name != site.plan.durable_dir]
    beside = dict.fromkeys(facts.approval.beside, timestamp.utc_now())
    if begun and facts.approval.how == CONTINUED:
        show.say(_("continuing the teardown approved at {at}", at=begun.approved_at))
        exposed = rotation.exposed_credentials(begun, boxes, credentials)
        return replace(begun, gone=begun.gone | gone, exposed=exposed, beside=beside | begun.beside)
    is_all = facts.approval.how == GIVEN
    may_go = {
        box: id_ for box, id_ in facts.to_destroy.items() if is_all or box in facts.approval.boxes
    }
    made = Teardown(
        run=facts.run,
        digest=facts.receipt.digest,
        verb=site.project.profile.meter_stop.verb,
        approved_at=timestamp.utc_now(),
        approved_by=facts.approval.how,
    )
    exposed = rotation.exposed_credentials(made, boxes, credentials)
    return replace(made, gone=gone, exposed=exposed, beside=beside, to_destroy=may_go)


def _tear_down(site: Site, begun: Teardown) -> Teardown:
    """Every box; each step is written down, for a `down` that goes on."""
    steps = Steps(site.results.teardown, begun)
    site.end_boxes(steps)
    # First: a tier that is there after the end would be that of a run that was launched anew.
    site.forget_boxes()
    steps.finished()
    return steps.now


def _done(teardown: Teardown, *, is_open: bool) -> str:
    """What was done; `is_open`: the rest is a person's."""
    said = {"verb": teardown.verb, "at": teardown.finished_at, "approval": short(teardown.digest)}
    if is_open:
        return _("{verb}: Boxcar's part was done at {at}, approval {approval}", **said)
    return _("{verb}: done at {at}, approval {approval}", **said)


def _report(
    site: Site,
    teardown: Teardown | None,
    reasons: Sequence[Missing],
    *,
    as_json: bool,
    is_stop: bool = False,
) -> int:
    """Say how it ended, and return the exit code for it."""
    is_down = teardown is not None and teardown.finished_at is not None
    if teardown and is_down:
        teardown = end_meters(site, teardown, is_stop=is_stop)
    still_open = meters.open_meters(site.project, teardown)
    n = len(reasons)
    # Of a run that was never launched nothing is missing.
    if reasons and (reasons[0].cell or reasons[0].command != Command("launch")):
        show.say(_("refused; nothing was removed. {n} {n:thing is|things are} missing:", n=n))
    show.say_of_each((row.cell or _("the run"), row.message) for row in reasons)
    if failed := [row.cell for row in reasons if row.cell and _is_failed(row)]:
        _say_how_to_abandon([*dict.fromkeys(failed)])
    if teardown and is_down:
        show.say(_done(teardown, is_open=bool(still_open)))
        for sentence in rotation.rotation_steps(teardown):
            show.say(sentence)
        show.say(_("The results stay in {folder}", folder=site.results.root))
    for row in meters.meter_rows(still_open):
        show.alarm(row)
    if still_open:
        tell_money(site, timestamp.utc_now())
    if as_json:
        show.json_document(
            "down",
            {
                "run": site.plan.run,
                "is_down": is_down,
                "missing": list(reasons),
                "teardown": teardown,
                "open_meters": still_open,
                "results": str(site.results.root),
            },
        )
    if not is_down:
        return exit_codes.FAILED
    return exit_codes.TEMPORARY if still_open else exit_codes.DONE


def _is_failed(row: Missing) -> bool:
    return isinstance(row.command, Command) and row.command.verb == "explain"


def _say_how_to_abandon(cells: Sequence[str]) -> None:
    """Ready to copy, but for the reason; a line that fills the screen is said where all is."""
    if show.is_shortened() and len(cells) > _MOST_NAMED:
        show.say(
            Message(
                _("To give up the {n} cells that failed, copy the last line of", n=len(cells)),
                Command("down", ("--all",)),
            )
        )
        return
    named = [word for cell in cells for word in ("--abandon", cell)]
    show.say(Message(_("To give up what failed"), Command("down", (*named, "--because", "…"))))
