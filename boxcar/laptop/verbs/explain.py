"""`invoke explain --cell NAME`: why a cell is where it is. A platform is explained in `platform`.

Read from the journals, the claim, the manifests and the receipts. Nothing is judged anew here:
whether a result is good is what `verify` finds out.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from boxcar.laptop.common import show, units
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.named_numbers import named_numbers
from boxcar.laptop.common.table_view import TableView
from boxcar.laptop.profiles import survival
from boxcar.laptop.profiles.page import document, page
from boxcar.laptop.profiles.profile import Profile
from boxcar.laptop.project.project import Project
from boxcar.laptop.results.how_checked import how_checked
from boxcar.laptop.run import blocked
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.sites.site import Site
from boxcar.laptop.triage import advice, verdict_document, verdict_lines
from boxcar.laptop.triage.advice import Advice
from boxcar.laptop.verbs.logs import find
from boxcar.laptop.verbs.next_step import NextStep, is_missing_here, next_step, sentence
from boxcar.shared import state, timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell import begun, line_spelling
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import cell_claim, manifest, receipt
from boxcar.shared.files.accepted import LAPTOP
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.message import Command, Message, counted
from boxcar.shared.record import dataclass
from boxcar.shared.triage.cause import Quote
from boxcar.shared.triage.course import CHANGE_FIRST
from boxcar.shared.triage.signatures.all_rows import BY_ID
from boxcar.shared.triage.told_cause import course_of, quotes_of

SENTENCES = {
    "cell.claimed": "claimed by {queue} on {box}",
    "cell.started": "attempt {attempt} started: {cfg} {task}, {on}",
    "cell.progress": "attempt {attempt}: {numbers}",
    "cell.retried": "attempt {attempt} failed after {time} ({failure}: {reason}); "
    "the same again in {wait_s} s",
    "cell.preempted": "attempt {attempt} was asked to leave after {time}; "
    "it resumes from its checkpoint at the next launch",
    "cell.failed": "attempt {attempt} failed after {time} ({failure}: {reason}); {action}",
    "cell.succeeded": "attempt {attempt} ended after {time} and wrote all its artifacts",
    "cell.synced": "published: {published}, {size}, manifest {manifest}",
    "cell.copied": "copied to {url}, {size}, manifest {manifest}",
    "cell.verified": "{proven}{metrics}",
    "box.warning": "warning: {text}",
}


@dataclass(frozen=True)
class Moment:
    """Something that happened to a cell, in a sentence. A row of reports is one moment."""

    at: str
    queue: str
    what: str


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
    for problem in survival.problems(profile):
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
    with show.waiting(Sentence("how_far.asking")):
        site.boxes.refresh()
    view = look(site, timestamp.utc_now())
    cell = find(view, name)
    verdict = _verdict(view, cell)
    return Explanation(
        cell=name,
        state=cell.word,
        facts=(
            *(_where(cell), _how_far(cell)),
            *(verdict_lines.lines(*verdict) if verdict else ()),
            *(*_what_it_waits_for(cell, view), *_its_queue(cell, view), *_papers(site, cell)),
        ),
        verdict=verdict_document.of(*verdict) if verdict else None,
        history=history(view, name),
        next=_next(site, cell, view),
    )


def history(view: RunView, cell: str) -> tuple[Moment, ...]:
    """Every event of the cell in the order of time, over all queues."""
    events = [event for queue in view.queues for event in queue.events if event.cell == cell]
    events.sort(key=lambda event: event.at)
    rows = groupby(events, key=lambda event: (event.type, event.data.get("attempt")))
    return tuple(moment for (type_, _), row in rows for moment in _moments(type_, list(row)))


def told(event: Event) -> str:
    """The event as a plain sentence; `?` for what an event of another version does not say."""
    data = event.data
    numbers = data.get("progress", {})
    steps = [f"{name} {numbers[name]}" for name in ("step", "epoch") if name in numbers]
    metrics = named_numbers(data.get("metrics", {}))
    notes = "".join(f"; {name}: {why}" for name, why in data.get("metric_notes", {}).items())
    words = {
        "time": units.duration(data["seconds"]) if "seconds" in data else "?",
        "size": units.size(data.get("size_bytes", 0)),
        "manifest": digest.short(data.get("manifest_sha256", "?")),
        "numbers": ", ".join([*steps, named_numbers(numbers)]).strip(", "),
        "metrics": f": {metrics}{notes}" if metrics else "",
        "proven": _proven(data),
        "action": _action(
            data.get("is_final", False), data.get("is_kept", False), data.get("failure", "")
        ),
        "on": ", ".join(
            (_counted(data, "epochs", "epoch"), _counted(data, "nproc", "rank"), *_more(event))
        ),
        "published": _counted(data, "files", "file"),
    }
    return SENTENCES.get(event.type, event.type).format_map(_Words(data | words))


def _proven(data: dict[str, Any]) -> str:
    if data.get("by") != LAPTOP:
        return "every artifact was loaded and checked"
    files = data.get("unpickled") or []
    unpickled = f", {', '.join(map(str, files))} unpickled" if files else ""
    if data.get("is_lent"):
        return f"lent: its result is on the laptop, proven at {data.get('accepted_at', '?')}"
    return f"accepted: verify proved it on the laptop at {data.get('accepted_at', '?')}{unpickled}"


def _more(event: Event) -> list[str]:
    """The words and variables that a line gave, where it gave some."""
    if event.type != "cell.started" or "cfg" not in event.data:
        return []
    words = line_spelling.words(begun.line(event))
    return [shlex.join(words)] if words else []


def next_for(cell: CellView, view: RunView) -> NextStep:
    """What brings this one cell on."""
    if cell.is_dropped:
        return NextStep(Command("verify"), "nothing of it is missing; append its line to run it")
    if cell.damage:
        return NextStep(Command("repair"), f"it is verified in its journal, but {cell.damage}")
    is_at_work = any(may_run(q) for q in view.queues if q.name == cell.queue)
    match cell.record.state if cell.record else None:
        case None:
            return NextStep(Command("status"), "a journal cannot be read; status says which")
        case state.Verified():
            return NextStep(Command("pull"), "its result is proven on the durable tier")
        case state.Failed(is_final=True):
            return NextStep(
                Command("logs", ("--cell", cell.name)),
                Message(
                    "fix what it says and launch again, or give the cell up",
                    Command("down", ("--abandon", cell.name, "--because", "…")),
                ),
            )
        case state.Failed(is_kept=True):
            return NextStep(
                Command("launch"), "put right what it says, and the next agent judges it anew"
            )
        case state.Failed(failure="NOCFG"):
            return NextStep(Command("push"), "its line cannot run before that is fixed")
        case state.Failed(failure=failure):
            return _after_a_failure(cell.name, failure)
        case _ if kept := blocked.of_run(view).get(cell.name):
            return NextStep(kept.command, f"it comes after {kept.by}, which {kept.why}")
        case _ if not is_at_work:
            return NextStep(Command("launch"), f"no agent is at work in {cell.queue}")
        case state.Queued():
            return NextStep(Command("watch"), "it waits for its turn")
        case _:
            return NextStep(Command("logs", ("--cell", cell.name, "--follow")), "it is running")


def _after_a_failure(cell: str, failure: str) -> NextStep:
    if not _is_to_change(failure):
        again = "fix what it says; as it is, the next agent only tries it again"
        return NextStep(Command("logs", ("--cell", cell)), Message(again, Command("launch")))
    give_up = Command("down", ("--abandon", cell, "--because", "…"))
    note = advice.of(failure).todo or ""
    launch = Command("launch", note=note, or_else=give_up)
    return NextStep(launch, Sentence("triage.change_first"))


def _is_to_change(failure: str) -> bool:
    """Whether its own row says what to change; a script's own error is told by its words alone."""
    found = advice.of(failure)
    return failure in BY_ID and found.course in CHANGE_FIRST


def _verdict(view: RunView, cell: CellView) -> tuple[Advice, tuple[Quote, ...]] | None:
    """What the last attempt failed of, with the lines of its log; None where it did not fail."""
    now = cell.record.state if cell.record else None
    if not isinstance(now, state.Failed | state.Waiting):
        return None
    events = [event for queue in view.queues for event in queue.events if event.cell == cell.name]
    ended = [event for event in events if event.type in ("cell.failed", "cell.retried")]
    data = max(ended, key=lambda event: event.at).data if ended else {}
    found = advice.of(now.failure, course_of(now.course), cell.name, str(data.get("reason", "")))
    return found, quotes_of(data.get("evidence"))


def _next(site: Site, cell: CellView, view: RunView) -> NextStep:
    step = next_for(cell, view)
    is_here = not is_missing_here(cell, site.results)
    return next_step(view, site) if is_here and step.command == Command("pull") else step


def _counted(data: dict[str, Any], field: str, noun: str) -> str:
    number = data.get(field)
    return counted(number, noun) if isinstance(number, int) else f"? {noun}s"


class _Words(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"


def _action(is_final: bool, is_kept: bool, failure: str) -> str:
    if is_kept:
        return "what it left is kept, and the next launch judges it anew; it is not trained again"
    if is_final:
        return "it is not tried again under this release"
    if _is_to_change(failure):
        return "unless it is changed it fails in the same way"
    return "this agent gave it up; the next one tries it again"


def _moments(type_: str, row: list[Event]) -> Iterable[Moment]:
    if type_ != "cell.progress" or len(row) < 3:
        return [Moment(event.at, event.data.get("queue", "?"), told(event)) for event in row]
    first, last = row[0], row[-1]
    what = f"{told(first)} … {told(last)}, at {last.at} ({len(row)} reports)"
    return [Moment(first.at, first.data.get("queue", "?"), what)]


def _where(cell: CellView) -> str:
    epochs = counted(cell.epochs, "epoch") if cell.epochs else "epochs as the job says"
    index = f", index {cell.index}" if cell.index is not None else ""
    return f"{cell.cfg} {cell.task}, {epochs}; in {cell.queue}{index}, on {cell.box}"


def _how_far(cell: CellView) -> str:
    if cell.record is None:
        return "state unknown: the journal that may hold it cannot be read"
    if cell.is_dropped:
        return "dropped: it never ran, and its line is commented out"
    spent = f"{counted(cell.record.attempts, 'attempt')}, {units.duration(cell.seconds)}"
    now = cell.record.state
    if isinstance(now, state.Failed):
        action = _action(now.is_final, now.is_kept, now.failure)
        return f"failed ({now.failure}): {now.reason}; {action}; {spent}"
    if cell.damage:
        return f"{cell.word}: {now.word} in its journal, but {cell.damage}; {spent}"
    return f"{cell.sentence}; {spent}"


def _what_it_waits_for(cell: CellView, view: RunView) -> list[str]:
    kept = blocked.of_run(view).get(cell.name)
    return [f"blocked by {kept.by}, which {kept.why}"] if kept else []


def _its_queue(cell: CellView, view: RunView) -> list[str]:
    found = [queue.condition for queue in view.queues if queue.name == cell.queue]
    return [f"{cell.queue} is {now.word}: {now.sentence}" for now in found]


def _papers(site: Site, cell: CellView) -> list[str]:
    """What the claim, the manifests and the receipt say, or that there is none."""
    name, tier = cell.name, site.tier
    return [
        _say_if_there("claim", lambda: _claimed(cell_claim.read(tier.claim(name)))),
        _say_if_there("on the tier", lambda: _published(manifest.read(tier.manifest(name)))),
        _say_if_there("receipt", lambda: _checked(receipt.read_cell(tier.receipt(name)))),
        _say_if_there(
            "in the results", lambda: _published(manifest.read(site.results.manifest(name)))
        ),
    ]


def _say_if_there(what: str, read: Callable[[], str]) -> str:
    try:
        return f"{what}: {read()}"
    except FileNotFoundError:
        return f"{what}: none yet"
    except (DamagedError, OSError) as error:
        return f"{what}: cannot be read: {error}"


def _claimed(found: cell_claim.Claim | None) -> str:
    return f"{found.queue} on {found.box}, at {found.at}" if found else "none yet"


def _published(found: manifest.Manifest) -> str:
    carried = found.carried
    beside = [f"{counted(len(carried.files), 'file')} carried"] if carried.files else []
    parts = [
        f"attempt {found.attempt} of {found.box}, release {digest.short(found.release)}",
        counted(len(found.files), "file"),
        *beside,
        units.size(found.size_bytes),
        *(f"not carried, {sentence}" for sentence in carried.left_out),
    ]
    return ", ".join(parts)


def _checked(found: receipt.CellReceipt) -> str:
    if found.is_good:
        return f"good: {how_checked(found.findings)}, at {found.checked_at}"
    bad = [f"{f.path}: {', '.join(f.problems)}" for f in found.findings if f.problems]
    return "; ".join(bad)


def _explain_cell(found: Explanation, as_json: bool) -> None:
    if as_json:
        show.json_document("explain", found)
        return
    show.line(f"{found.cell}: {found.state}")
    for fact in found.facts:
        show.line(Sentence("triage.said", text=fact))
    rows = [(moment.at, moment.queue, moment.what) for moment in found.history]
    show.table("what happened", ("at", "queue", "what"), rows)
    show.say(sentence(found.next))
