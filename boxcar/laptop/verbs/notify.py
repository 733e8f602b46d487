"""`invoke notify`: where news of the run goes; with `--test` a message to each, and its answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.news import posting
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.project.from_environment import Target, targets
from boxcar.laptop.project.notify.endpoints import BOX, LAPTOP
from boxcar.laptop.project.project import Project
from boxcar.shared import timestamp
from boxcar.shared.channels import dead_man
from boxcar.shared.channels.answer import WEBHOOK, Endpoint
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.news.text import trial
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire import news_asks

OFF = "off"
_TRIED = ("endpoint", "message", "answer")
_SHOWN = ("endpoint", "sent by", "variables", "proof of delivery")
_PROOFS = {
    WEBHOOK: mark("any 2xx answer"),
    dead_man.HEARTBEAT: mark("the service misses what does not come"),
    posting.EMAIL: mark("the mail server's 250"),
    posting.APPRISE: mark("sent, not confirmed"),
}
_VERDICTS = {
    news_asks.TAKEN: mark("delivered"),
    "refused": mark("refused"),
    "later": mark("try later"),
    OFF: mark("off"),
    "sent": mark("sent, not confirmed"),
}


@dataclass(frozen=True)
class Row:
    """One endpoint. `verdict` is taken, sent (not proven), refused, later or off; null where
    nothing was sent.

    `answer` is the service's own, without a secret. `reason` says why nothing is sent there. `by`
    is box or laptop: who sends news there.
    """

    endpoint: str
    variables: tuple[str, ...]
    verdict: str | None = None
    answer: str | None = None
    status: int | None = None
    clock_ahead_s: int | None = None
    reason: str | None = None
    by: str = BOX


def notify(
    project: Project,
    *,
    is_test: bool = False,
    box: str = "",
    only: Sequence[str] = (),
    as_json: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Show where news goes, or send one test message to each endpoint (or those of `only`, by
    their names); 1 where one of these was not taken. `box` names the one that posts it: with what
    is set here now, which it does not keep. Raises InputError.
    """
    if box and not is_test:
        raise InputError(_("--from works only with --test"), Command("notify", ("--test",)))
    found = _chosen(project, targets(project.job, environ), only)
    # What the job says this machine sends goes to no box, for a try neither.
    found = [one for one in found if not box or one.place == BOX]
    place = _("box {box}", box=box) if box else _("the laptop")
    rows = _tried(project, found, box, place, environ) if is_test and found else _listed(found)
    if as_json:
        about = {"run": project.plan.run, "from": box or None, "is_test": is_test}
        show.json_document("notify", about | {"endpoints": rows})
    elif not rows:
        nobody = _("the job has no notify:, so no notifications are sent. How to write it")
        show.say(Message(nobody, Command("explain", ("--about", "notify"))))
    else:
        _present(project, rows, place, is_test=is_test)
    return 1 if is_test and any(row.verdict not in posting.THROUGH for row in rows) else 0


def _chosen(project: Project, found: list[Target], only: Sequence[str]) -> list[Target]:
    known = [name for one in found for name in (one.label, one.channel)]
    run = the_run(project.plan.run)
    names = pick(only, dict.fromkeys(known), what="endpoint", of=run)
    return [one for one in found if not names or {one.label, one.channel} & set(names)]


def _listed(found: Sequence[Target]) -> list[Row]:
    return [_off(one) if one.off else Row(one.label, one.variables, by=one.place) for one in found]


def _off(one: Target) -> Row:
    said = _(
        "{endpoint}: {variable} is not set, so nothing is sent there; type: export {variable}=…",
        endpoint=one.label,
        variable=one.off,
    )
    return Row(one.label, one.variables, OFF, reason=said, by=one.place)


def _tried(
    project: Project,
    found: Sequence[Target],
    box: str,
    place: Sentence,
    environ: Mapping[str, str],
) -> list[Row]:
    sent = [one for one in found if one.endpoint]
    language = project.job.language or language_of("", environ)
    text = trial(project.plan.run, place, timestamp.utc_now(), language)
    one_box = box or next(iter(project.job.boxes))
    endpoints = [_of_box(one.endpoint, one_box) for one in sent if one.endpoint]
    with show.waiting(
        _("sending {n} test {n:message|messages} from {place}", n=len(sent), place=place)
    ):
        if box:
            posted = _from_box(project, box, endpoints, text)
        else:
            posted = posting.post(project, endpoints, text, environ)
    pairs = zip(sent, posted, strict=True)
    told = {one.label: _row(one, each) for one, each in pairs}
    return [told.get(one.label) or _off(one) for one in found]


def _of_box(endpoint: Endpoint, box: str) -> Endpoint:
    """A dead-man's service knows each box by an address of its own."""
    if endpoint.channel != dead_man.HEARTBEAT:
        return endpoint
    return replace(endpoint, url=dead_man.filled(endpoint.url, box))


def _from_box(
    project: Project, box: str, endpoints: Sequence[Endpoint], text: str
) -> Sequence[news_asks.Posted]:
    project.scratch(box)  # raises for a box that is not in the plan
    question = posting.question(endpoints, text, project.profile.hook)
    with open_site(project, show.say) as site:
        return site.ask(box, question, timeout_s=posting.POST_TIMEOUT_S).posted


def _row(one: Target, posted: news_asks.Posted) -> Row:
    said, status, ahead_s = posted.said, posted.status, posted.ahead_s
    return Row(one.label, one.variables, posted.verdict, said, status, ahead_s, by=one.place)


def _present(project: Project, rows: Sequence[Row], place: Sentence, *, is_test: bool) -> None:
    run = project.plan.run
    if is_test:
        tried = [
            (row.endpoint, Sentence(_VERDICTS[row.verdict or OFF]), row.answer) for row in rows
        ]
        show.table(_("{run}: test messages from {place}", run=run, place=place), _TRIED, tried)
    else:
        shown = [(r.endpoint, _by(r), ", ".join(r.variables), _proof(r)) for r in rows]
        show.table(_("{run}: notifications go to", run=run), _SHOWN, shown)
    for row in rows:
        if row.reason:
            show.say(row.reason)
    show.say(_end(rows, is_test=is_test))


def _by(row: Row) -> Sentence:
    return _(mark("the laptop") if row.by == LAPTOP else mark("each box"))


def _proof(row: Row) -> Sentence:
    if row.verdict == OFF:
        return _("off")
    channel = row.endpoint.partition(" ")[0]
    return Sentence(_PROOFS.get(channel, mark("the service's answer")))


def _end(rows: Sequence[Row], *, is_test: bool) -> str | Message:
    if not is_test:
        return Message(_("To send a test to each"), Command("notify", ("--test",)))
    if missing := sum(row.verdict not in posting.THROUGH for row in rows):
        told = _(
            "{not_taken} of {n} {n:message|messages} not delivered. When that is fixed",
            not_taken=missing,
            n=len(rows),
        )
        return Message(told, Command("notify", ("--test",)))
    is_proven = all(row.verdict == news_asks.TAKEN for row in rows)
    return _(
        mark("{n} {n:message|messages} delivered, as the {n:service|services} confirmed")
        if is_proven
        else mark("{n} {n:message|messages} sent; where delivery is not confirmed, check the chat"),
        n=len(rows),
    )
