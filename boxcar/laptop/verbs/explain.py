"""`invoke explain --cell NAME`: why a cell is where it is. A platform is explained in `platform`.

Read from the journals, the claim, the manifests and the receipts. Nothing is judged anew here:
whether a result is good is what `verify` finds out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from boxcar.laptop.common import show, units
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.text_layout import TableView
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.profiles.page import document, page
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.project import Project
from boxcar.laptop.results.judge import how_checked
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run import relaunch
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.state_words import condition_sentence, state_sentence
from boxcar.laptop.run.view import ABANDONED, CellView, RunView, blocked_of_run
from boxcar.laptop.triage import advice
from boxcar.laptop.triage.advice import Advice
from boxcar.laptop.verbs.explain_history import (
    Moment,
    advice_for_cell,
    count_moments,
    history_of_cell,
)
from boxcar.laptop.verbs.logs import find
from boxcar.laptop.verbs.next_step import NextStep, is_missing_here, next_step, sentence
from boxcar.shared import state, timestamp
from boxcar.shared.disk import digest
from boxcar.shared.errors import Command, DamagedError, Message
from boxcar.shared.files import attempt, manifest, receipt
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import Sentence, _, chained, mark
from boxcar.shared.triage.evidence import Quote, course_of, quotes_of

_PAPERS = {
    "claim": mark("claim"),
    "tier": mark("on the tier"),
    "receipt": mark("receipt"),
    "results": mark("in the results"),
}


@dataclass(frozen=True)
class Explanation:
    """Why a cell is where it is: `facts` in sentences, its history, and what to type next.
    `verdict` is what its last attempt failed of, None where it did not fail.
    """

    cell: str
    state: str
    facts: tuple[str, ...]
    verdict: dict[str, Any] | None
    history: tuple[Moment, ...]
    next: NextStep


def explain_platform(profile: Profile, *, language: str = "", as_json: bool = False) -> int:
    """Show all that the profile says; `language` is en, zh or '' for the locale's own."""
    chosen = language_of(language, os.environ)
    if as_json:
        show.json_document("explain", document(profile, chosen))
        return 0
    for problem in survival.survival_problems(profile):
        show.say(problem)
    for part in page(profile, chosen):
        if isinstance(part, TableView):
            show.table(part.title, part.columns, part.rows, is_in_language=True)
        else:
            show.line(part)
    return 0


def explain(project: Project, *, cell: str, as_json: bool = False) -> int:
    """Explain the cell. Raises InputError for an unknown one."""
    with open_site(project, show.say) as site:
        _explain_cell(explanation(site, cell), as_json)
    return 0


def explanation(site: Site, name: str) -> Explanation:
    with show.waiting(_("asking the boxes")):
        site.refresh()
    return explain_in(site, look_at_run(site, timestamp.utc_now()), name)


def explain_in(site: Site, view: RunView, name: str, *, has_quotes: bool = True) -> Explanation:
    """From a look that somebody had, with lines of the log. Raises InputError for an unknown
    cell.
    """
    cell = find(view, name)
    verdict = _verdict(view, cell)
    if verdict and not has_quotes:
        verdict = verdict[0], ()
    return Explanation(
        cell=name,
        state=cell.word,
        facts=(
            *(_where(cell), _how_far(cell)),
            *([_("not certain: {doubt}", doubt=cell.marked)] if cell.marked else ()),
            *(advice.verdict_lines(*verdict) if verdict else ()),
            *(*_what_it_waits_for(cell, view), *_its_queue(cell, view), *_papers(site, cell)),
        ),
        verdict=advice.verdict_document(*verdict) if verdict else None,
        history=history_of_cell(view, name),
        next=_next(site, cell, view),
    )


def next_for(cell: CellView, view: RunView) -> NextStep:
    """What brings this one cell on."""
    if cell.is_dropped:
        return NextStep(
            Command("verify"), _("nothing is missing; to run the cell, append its line to a queue")
        )
    if cell.damage:
        return NextStep(
            Command("repair"), _("its event log says verified, but {damage}", damage=cell.damage)
        )
    is_at_work = any(map(may_run, view.queues_of(cell)))
    match cell.record.state if cell.record else None:
        case None:
            return NextStep(Command("status"), _("an event log cannot be read; status says which"))
        case state.Verified():
            return NextStep(Command("pull"), _("its result is verified on the durable tier"))
        case state.Failed() as failed:
            return _after_a_failure(cell, failed, view)
        case _ if kept := blocked_of_run(view).get(cell.name):
            return NextStep(
                kept.command, _("it waits for {by}, which {why}", by=kept.by, why=kept.why)
            )
        case _ if not is_at_work:
            return NextStep(Command("launch"), _("no agent is running {queue}", queue=cell.queue))
        case state.Queued():
            return NextStep(Command("watch"), _("it is waiting for its turn"))
        case _:
            follow = Command("logs", ("--cell", cell.name, "--follow"))
            return NextStep(follow, _("it is running"))


def _give_up(cell: str) -> Command:
    return Command("down", ("--abandon", cell, "--because", "…"))


def _after_a_failure(cell: CellView, failed: state.Failed, view: RunView) -> NextStep:
    name, failure = cell.name, failed.failure
    logs = Command("logs", ("--cell", name))
    if cell.index is None:
        said = _("its line is commented out, and a cell that was begun stays in the run: say why")
        return NextStep(_give_up(name), said)
    if failed.is_kept:
        return NextStep(
            Command("launch"),
            _("fix the cause; the next launch re-checks the result without retraining"),
        )
    for queue in view.queues:
        if queue.name == cell.queue and queue.is_alive:
            when = relaunch.when_retried(view, queue, [name])
            return NextStep(relaunch.to_retry(queue), _("fix the cause first; {when}", when=when))
    if failed.is_final:
        again = Message(
            _("read the log, fix the cause and launch again; or give the cell up"), _give_up(name)
        )
        return NextStep(logs, again)
    if failure == "NOCFG":
        return NextStep(Command("push"), _("its line cannot run until that is fixed"))
    if not advice.is_to_change(failure):
        again = Message(
            _("read the log and fix the cause; the next launch retries it"), Command("launch")
        )
        return NextStep(logs, again)
    launch = Command("launch", note=advice.advice_of(failure).todo or "", or_else=_give_up(name))
    return NextStep(launch, _("fix the cause first; unchanged, it would fail again"))


def _verdict(view: RunView, cell: CellView) -> tuple[Advice, tuple[Quote, ...]] | None:
    """What the last attempt failed of, with the lines of its log; None where it did not fail."""
    now = cell.record.state if cell.record else None
    if not isinstance(now, state.Failed | state.Waiting):
        return None
    events = [event for queue in view.queues for event in queue.events if event.cell == cell.name]
    ended = [event for event in events if event.type in ("cell.failed", "cell.retried")]
    data = max(ended, key=lambda event: event.at).data if ended else {}
    found = advice.advice_of(
        now.failure, course_of(now.course), cell.name, str(data.get("reason", ""))
    )
    if isinstance(now, state.Failed) and now.is_final:
        found = replace(found, follows=advice_for_cell(now.is_final, now.is_kept, now.failure))
    return found, quotes_of(data.get("evidence"))


def _next(site: Site, cell: CellView, view: RunView) -> NextStep:
    if cell.word == ABANDONED:
        return next_step(view, site)
    step = next_for(cell, view)
    is_here = not is_missing_here(cell, site.results)
    return next_step(view, site) if is_here and step.command == Command("pull") else step


def _where(cell: CellView) -> Sentence:
    of_job = _("epochs from the job")
    index = _(", index {index}", index=cell.index) if cell.index is not None else ""
    return _(
        "{cfg} {task}, {epochs}; in {queue}{index}, on {box}",
        cfg=cell.cfg,
        task=cell.task,
        epochs=count_moments("epochs", cell.epochs) if cell.epochs else of_job,
        queue=cell.queue,
        index=index,
        box=cell.box or _("any of its boxes"),
    )


def _how_far(cell: CellView) -> Sentence:
    if cell.record is None:
        return _("state unknown: its event log cannot be read")
    if cell.is_dropped:
        return _("dropped: it never ran, and its line is commented out")
    spent = _(
        "{n} {n:attempt|attempts}, {time}",
        n=cell.record.attempts,
        time=units.duration(cell.seconds),
    )
    now = cell.record.state
    if cell.word == ABANDONED:
        return _("abandoned: {reason}; {spent}", reason=cell.given_up, spent=spent)
    if isinstance(now, state.Failed):
        reason = advice.reason(now.failure, now.reason)
        action = advice_for_cell(now.is_final, now.is_kept, now.failure)
        about = {"failure": now.failure, "reason": reason, "action": action}
        return _("failed ({failure}): {reason}; {action}; {spent}", **about, spent=spent)
    if cell.damage:
        words = {"word": state_sentence(cell.word), "state": state_sentence(now.word)}
        return _(
            "{word}: {state} in its event log, but {damage}; {spent}",
            **words,
            damage=cell.damage,
            spent=spent,
        )
    return _("{state}; {spent}", state=cell.sentence, spent=spent)


def _what_it_waits_for(cell: CellView, view: RunView) -> list[Sentence]:
    kept = blocked_of_run(view).get(cell.name)
    return [_("blocked by {by}, which {why}", by=kept.by, why=kept.why)] if kept else []


def _its_queue(cell: CellView, view: RunView) -> list[Sentence]:
    return [
        _(
            "{queue} is {word}: {sentence}",
            queue=queue.name,
            word=condition_sentence(queue.condition.word),
            sentence=queue.condition.sentence,
        )
        for queue in view.queues_of(cell)
    ]


def _papers(site: Site, cell: CellView) -> list[Sentence]:
    """What the claim, the manifests and the receipt say, or that there is none."""
    name, tier = cell.name, site.tier
    none = _(mark("not checked: the run was torn down") if is_over(site) else mark("none yet"))
    of_tier: dict[str, Callable[[], str]] = {
        "claim": lambda: _claimed(attempt.read_claim(tier.claim(name)), none),
        "tier": lambda: _published(manifest.read_manifest(tier.manifest(name))),
        "receipt": lambda: _checked(receipt.read_cell(tier.receipt(name))),
    }
    return [
        *(_say_if_there(what, read, none) for what, read in of_tier.items()),
        _say_if_there(
            "results",
            lambda: _published(manifest.read_manifest(site.results.manifest(name))),
            _("none yet"),
        ),
    ]


def _say_if_there(what: str, read: Callable[[], str], none: Sentence) -> Sentence:
    try:
        text = read()
    except FileNotFoundError:
        text = none
    except (DamagedError, OSError) as error:
        text = _("cannot be read: {error}", error=error)
    return _("{head}: {text}", head=Sentence(_PAPERS[what]), text=text)


def _claimed(found: attempt.Claim | None, none: Sentence) -> Sentence:
    if found is None:
        return none
    return _("{queue} on {box}, at {at}", queue=found.queue, box=found.box, at=found.at)


def _published(found: manifest.Manifest) -> str:
    carried, release = found.carried, digest.short(found.release)
    beside = [_("{n} extra {n:file|files}", n=len(carried.files))] if carried.files else []
    parts = [
        _(
            "attempt {attempt} on {box}, release {release}",
            attempt=found.attempt,
            box=found.box,
            release=release,
        ),
        _("{n} {n:file|files}", n=len(found.files)),
        *beside,
        units.size(found.size_bytes),
        *(_("left out: {text}", text=text) for text in carried.left_out),
    ]
    return chained(mark("{first}, {second}"), parts)


def _checked(found: receipt.CellReceipt) -> str:
    if found.is_good:
        why = [
            _("{path} {problem}", path=f.path, problem=f.facts[receipt.WHY_BYTES])
            for f in found.findings
            if receipt.WHY_BYTES in f.facts
        ]
        good = _("good: {how}, at {at}", how=how_checked(found.findings), at=found.checked_at)
        return chained(mark("{first}, {second}"), [good, *why]) if why else good
    bad = [f.sentence for f in found.findings if f.problems]
    return chained(mark("{first}; {second}"), bad)


def _explain_cell(found: Explanation, as_json: bool) -> None:
    if as_json:
        show.json_document("explain", found)
        return
    state = state_sentence(found.state)
    show.line(_("{head}: {text}", head=found.cell, text=state))
    for fact in found.facts:
        show.line(_("  {text}", text=fact))
    rows = [(moment.at, moment.queue, moment.what) for moment in found.history]
    show.table("what happened", ("at", "queue", "what"), rows)
    show.say(sentence(found.next))
