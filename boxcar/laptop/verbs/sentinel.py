"""`invoke sentinel`: one look at all runs of this person, by cron or on a host that never sleeps.

It speaks when something has changed that a person should know, and at least once a day: a box that
is silent, a queue that stands, a run that is done and still bills. It never ends anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.common import home, show, units
from boxcar.laptop.common.home import KnownRun
from boxcar.laptop.common.language import language_of
from boxcar.laptop.hosts import own_network
from boxcar.laptop.news import posting
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.from_environment import targets
from boxcar.laptop.project.project import Project
from boxcar.laptop.results.results_folder import is_over
from boxcar.laptop.run import moves
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.sentinel_memory import (
    Finding,
    Memory,
    is_to_say,
    key_of,
    read_memories,
    silences_after_look,
    write_memories,
)
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs.runs import LOCAL, is_past, open_known_run
from boxcar.laptop.verbs.spending import look_at_money
from boxcar.laptop.verbs.status import quiet_of_run
from boxcar.laptop.verbs.watch import bring_home
from boxcar.laptop.view.gpu_history import NOTHING_SEEN
from boxcar.laptop.view.needs import UNREACHABLE, Need, needs_of_run
from boxcar.laptop.view.run_rows import nearest_clock
from boxcar.shared import timestamp
from boxcar.shared.channels import dead_man
from boxcar.shared.channels.answer import WEBHOOK
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError, Command, Message, message_of
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, in_language

# A trial on this machine that was left is no news a week later.
_LOCAL_FOR_S = 7 * 86_400.0
MOST_SHOWN = 12


@dataclass(frozen=True)
class Looked:
    """One run at one look. `silent`: why each box did not answer; `answered`: some box did, over
    the network. `project` None: it could not be opened, `problem` says why.
    """

    known: KnownRun
    project: Project | None = None
    view: RunView | None = None
    needs: tuple[Need, ...] = ()
    silent: Mapping[str, str] | None = None
    answered: bool = False
    is_billed: bool = False
    is_over: bool = False
    problem: str = ""

    @property
    def key(self) -> str:
        return f"{self.known.run} {self.known.job}"


def sentinel(*, environ: Mapping[str, str] = os.environ) -> int:
    """Returns 1 where a run needs its person, 75 where this machine's network or another sentinel
    keeps anything from being known.
    """
    path = home.known_runs_file(os.environ).parent / "sentinel.json"
    memories = read_memories(path)
    if sys.stdin.isatty() or not path.exists():
        show.say(
            _(
                "A laptop that sleeps runs no cron, so nobody looks then. Put this line into the "
                "crontab of a machine that stays on: */10 * * * * boxcar sentinel. On each box, "
                "notify: - heartbeat: is the other half"
            )
        )
    atomic.make_folder(path.parent)
    if (held := lock.try_hold(path.with_suffix(".lock"))) is None:
        show.say(_("another sentinel is looking right now"))
        return exit_codes.TEMPORARY
    try:
        looked = [_look(one) for one in home.known_runs() if not _is_left_out(one)]
        has_network = _has_network(looked)
        judged = {
            one.key: _judge(one, memories, environ, has_network=has_network) for one in looked
        }
        write_memories(path, {key: memory for key, (memory, _needs) in judged.items()})
    finally:
        os.close(held)
    _bring_home(looked)
    if not looked:
        show.say(Message(_("no run is to be looked at. To launch one"), Command("launch")))
    if not has_network:
        show.say(
            _(
                "this machine reaches no known ssh server, so nothing is known of boxes that did "
                "not answer"
            )
        )
        return exit_codes.TEMPORARY
    return 1 if any(needs for _memory, needs in judged.values()) else 0


def _is_left_out(known: KnownRun) -> bool:
    age_s = timestamp.seconds_between(known.at, timestamp.utc_now())
    return is_past(known) or (known.profile == LOCAL and age_s > _LOCAL_FOR_S)


# --- one run


def _look(known: KnownRun) -> Looked:
    if not os.path.exists(known.job):  # noqa: PTH110  (a Path raises for one that may not be looked at)
        gone = _("{job} no longer exists; its boxes may still be billing", job=known.job)
        return Looked(known, problem=gone)
    try:
        project, _now = open_known_run(known.run, known.job, known.profile)
        with open_site(project, lambda _: None) as site:
            return _of_site(Looked(known, project), site)
    except (BoxcarError, OSError) as error:
        return Looked(known, problem=message_of(error).text)


def _of_site(found: Looked, site: Site) -> Looked:
    if not (is_gone := is_over(site)):
        site.refresh()
        moves.tell_boxes(site, lambda _: None)
    view = look_at_run(site, timestamp.utc_now())
    quiet = quiet_of_run(site, view)
    silent = {} if is_gone else dict(site.silent_boxes())
    boxes = {box.name for box in site.plan.boxes}
    return replace(
        found,
        view=view,
        is_over=is_gone,
        needs=needs_of_run(view, NOTHING_SEEN, quiet, "en"),
        silent=silent,
        answered=not is_gone and found.known.profile != LOCAL and bool(boxes - {*silent}),
        is_billed=quiet.is_billed,
    )


def _has_network(looked: Sequence[Looked]) -> bool:
    """Any box that answered proves it; else known servers are asked, where a box was silent."""
    if any(one.answered for one in looked) or not any(one.silent for one in looked):
        return True
    return own_network.is_up()


# --- what is said of it


def _judge(
    one: Looked, memories: Mapping[str, Memory], environ: Mapping[str, str], *, has_network: bool
) -> tuple[Memory, bool]:
    """What is remembered of it from now on, and whether it needs its person."""
    before, now = memories.get(one.key, Memory()), timestamp.utc_now()
    silences = silences_after_look(before, [*(one.silent or {})], now, has_network=has_network)
    after = replace(before, silences=silences)
    found = list(_findings(one, after, now))
    if one.is_over and not found and not before.said:
        return after, False  # nothing bills
    if is_to_say(before, found, now) and _say(one, found, before, environ):
        after = replace(after, said=tuple(finding.key for finding in found), said_at=now)
    return after, bool(found)


def _findings(one: Looked, after: Memory, now: str) -> Iterator[Finding]:
    if one.problem:
        yield Finding(one.known.run, one.problem, "problem")
    for box, why in (one.silent or {}).items():
        silence = after.silence_of(box)
        if silence and silence.is_proven(now):
            text = _(
                "silent for {time} ({why}). Whether it runs is not known: check the console "
                "(balance, power, port)",
                time=units.about(silence.for_s(now)),
                why=why,
            )
            yield Finding(box, text, f"{box}: silent")
    for need in one.needs:
        # Of a box that does not answer the witnesses decide, above.
        template = need.text.template if isinstance(need.text, Sentence) else ""
        if not need.is_quiet and template != UNREACHABLE:
            key = key_of(need.who, need.text)
            # A clock that is nearly over is told once more.
            yield Finding(need.who, need.text, f"{key} (broken)" if need.is_broken else key)


def _say(one: Looked, found: Sequence[Finding], before: Memory, environ: Mapping[str, str]) -> bool:
    """On this terminal, or in cron's mail, and to the chats of the run. False where none of these
    took it: then it is said again at the next look.
    """
    lines = _lines(one, found, before)
    for line in lines:
        show.say(line)
    if one.project is None:
        return True
    language = one.project.job.language or language_of("", environ)
    text = "\n".join(in_language(line, language) for line in lines)
    try:
        found_targets = targets(one.project.job, environ)
        chats = [
            target.endpoint
            for target in found_targets
            if target.endpoint and target.channel not in (WEBHOOK, dead_man.HEARTBEAT)
        ]
        for target in found_targets:
            if target.off:
                show.say(target.warning)
        posted = posting.post(one.project, chats, text, environ) if chats else []
    except (BoxcarError, OSError) as error:
        show.say(message_of(error))
        return False
    for answer in posted:
        if answer.verdict not in posting.THROUGH:
            show.say(_("{run}: not sent: {why}", run=one.known.run, why=answer.said))
    return not posted or any(answer.verdict in posting.THROUGH for answer in posted)


def _lines(one: Looked, found: Sequence[Finding], before: Memory) -> list[Sentence]:
    run = one.known.run
    if not found:
        how = _("everything is well again") if before.said else _("nothing needs attention")
        lines = [_("Boxcar {run}: {how}", run=run, how=how)]
        clock = one.view and nearest_clock(one.view, is_billed=one.is_billed)
        if one.view:
            verified, all_cells = len(one.view.of_words(("verified",))), len(one.view.cells)
            lines.append(_("{n} of {total} verified", n=verified, total=all_cells))
        return [*lines, clock] if clock else lines
    lines = [_("Boxcar {run}: {n} {n:thing needs|things need} attention", run=run, n=len(found))]
    for finding in found[:MOST_SHOWN]:
        about = {"head": finding.who, "text": finding.text}
        lines.append(
            _("{head}: {text}", **about) if finding.who else _("{text}", text=finding.text)
        )
    if (left := len(found) - MOST_SHOWN) > 0:
        lines.append(_("and {n} more", n=left))
    where = ("-p", one.known.profile, "--job", str(one.known.job))
    return [*lines, _("next: {command}", command=str(Command("status", where)))]


def _bring_home(looked: Sequence[Looked]) -> None:
    """As watch does: money and clocks, late news, and what no durable tier keeps. Said, never
    raised.
    """
    for one in looked:
        if one.project is None or one.view is None or one.is_over:
            continue
        try:
            with open_site(one.project, show.say) as site:
                look_at_money(site, one.view)
                bring_home(site, one.view)
        except (BoxcarError, OSError) as error:
            show.say(message_of(error))
