"""`invoke audit`: what every box is and has, and whether this run may start there.

The boxes tell facts (`onbox/answers/audit.py`), the durable tier is tried from all of them
(`fitness/tier_check.py`), and what that means is decided by the rules in `fitness/`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.fitness import (
    data_on_boxes,
    gpus_of_cells,
    health,
    memory_of_cells,
    other_runs,
    requirements,
    rules,
    space,
    tier_check,
)
from boxcar.laptop.fitness.caches import judge_caches
from boxcar.laptop.fitness.mirrors import MIRRORS, judge_mirrors
from boxcar.laptop.fitness.requirements import AskedPackages
from boxcar.laptop.fitness.rules import ALL, Row, Told, Verdict, Wanted
from boxcar.laptop.fitness.space import Measured
from boxcar.laptop.fitness.tier_check import Ask
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project import from_environment, profile_choice
from boxcar.laptop.project.project import Project
from boxcar.laptop.release.data_files import read_data
from boxcar.laptop.results import second_home
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import RunView
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs import send_data
from boxcar.laptop.verbs.next_step import before_launch, has_begun, next_step
from boxcar.laptop.verbs.spending import say_open_orders
from boxcar.shared import state, timestamp
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    Message,
    message_of,
    some,
    words_of,
)
from boxcar.shared.files.plan import Plan
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.box_asks import OthersSeen
from boxcar.shared.wire.envelope import Replies, several
from boxcar.shared.wire.facts import Facts

# The driver, the hook and torch on a cold disk each have a limit of their own on the box.
ASK_TIMEOUT_S = 180.0
_MOST_NAMED = 4
_ORDER = ("refuse", "warn", "ok")


@dataclass(frozen=True)
class Report:
    """The table, and the facts that it was made of, by box; `others`: who else is on each."""

    rows: tuple[Row, ...]
    facts: dict[str, Facts | None]
    others: dict[str, OthersSeen] = field(default_factory=dict)

    @property
    def is_refused(self) -> bool:
        return any(row.verdict == "refuse" for row in self.rows)


def audit(
    project: Project,
    *,
    boxes: Sequence[str] | None = None,
    reads_data: bool = False,
    as_json: bool = False,
) -> int:
    """Ask all boxes (or these), and show what they are; 1 where one of them is refused.

    `reads_data`: all that the boxes have of the job's data is read again, and not only looked at.
    """
    send_data.read_before(project)
    profile_choice.remember_profile(project.results, project.profile.name, profile_choice.AUDITED)
    with open_site(project, show.say) as site:
        site.refuse_launch()
        for box in boxes or ():
            project.scratch(box)  # raises for a box that is not in the plan
        with show.waiting(_("checking the boxes")):
            site.refresh()
            view = look_at_run(site, timestamp.utc_now())
            report = of_run(site, view, boxes=boxes, is_thorough=True, reads_data=reads_data)
        present(site, report, _then(site, view), as_json=as_json)
        if not as_json:
            say_open_orders()
        return 1 if report.is_refused else 0


def of_run(
    site: Site,
    view: RunView,
    *,
    boxes: Sequence[str] | None = None,
    is_thorough: bool = False,
    reads_data: bool = False,
) -> Report:
    """The report of all boxes, or of these. What is verified already is as of that view."""
    own_rows = site.judged(is_thorough=is_thorough)
    if own_rows is not None:
        of_data = _data(site, list(boxes or site.plan.queues.values()), reads_data=reads_data)
        return Report((*own_rows, *of_data), {})
    report = run_audit(
        site.ask,
        site.plan,
        _wanted(site),
        boxes=boxes,
        measured=passes.measured(site.project),
        verified={cell.name for cell in view.cells if cell.word == state.Verified.word},
    )
    of_data = _data(site, _answered(report), reads_data=reads_data)
    more = (*_second_home(site, report), *_beside(site, report), *of_data)
    return replace(report, rows=(*report.rows, *more))


def _second_home(site: Site, report: Report) -> list[Row]:
    boxes = _answered(report)
    if site.plan.second is None or not boxes:
        return []
    try:
        secrets = from_environment.resolve_secrets(site.project.job, os.environ)
    except InputError as error:
        return [Row(ALL, second_home.WHAT, "refuse", site.plan.second, message_of(error).text)]
    hook = site.project.profile.hook
    return second_home.check(site.ask, site.plan, boxes, hook, secrets)


def _data(site: Site, boxes: list[str], *, reads_data: bool) -> list[Row]:
    plan = site.plan
    if not boxes or not (plan.data or plan.data_urls):
        return []
    rows, to_send = list[Row](), dict[str, int]()
    if plan.data:
        found, errors = send_data.find_data(site, boxes, is_thorough=reads_data)
        read = read_data(site.project)
        data = {one.digest: data_on_boxes.Wanted(one.name, one.size_bytes) for one in read}
        to_send = {box: data_on_boxes.lacking_bytes(data, one) for box, one in found.items()}
        rows += data_on_boxes.judge_data(data, found)
        rows += _unknown(data_on_boxes.WHAT, errors)
    if plan.data_urls:
        seen, errors = send_data.look_at_urls(site, boxes)
        rows += data_on_boxes.judge_urls(plan.data_urls, seen, to_send)
        rows += _unknown(data_on_boxes.WHAT_URLS, errors)
    return rows


def _unknown(what: str, errors: Mapping[str, Exception]) -> list[Row]:
    said = _("unknown")
    return [Row(box, what, "warn", said, message_of(why).text) for box, why in errors.items()]


def _caches(site: Site, report: Report) -> list[Row]:
    env = {**site.plan.env, **site.plan.job_env}
    return list(judge_caches(report.facts, site.project.profile, env))


def _beside(site: Site, report: Report) -> list[Row]:
    """On this machine, which is the person's own, it is no warning."""
    verdict: Verdict = "warn" if site.needs_audit else "ok"
    return other_runs.judge(report.others, other_runs.gpus_of_run(site.plan), verdict)


def _answered(report: Report) -> list[str]:
    return [box for box, facts in report.facts.items() if facts is not None]


def run_audit(
    ask: Ask,
    plan: Plan,
    wanted: Wanted,
    *,
    boxes: Sequence[str] | None = None,
    measured: Measured | None = None,
    verified: Collection[str] = (),
) -> Report:
    """Ask the boxes all at once, and judge. `ask` is as `OpenRun.ask`."""
    names = [box.name for box in plan.boxes if not boxes or box.name in boxes]
    told = _ask_all(ask, plan, wanted, names)
    probe = _probe(ask, told, wanted)
    suspects = [
        box for box, one in told.items() if one.facts and rules.seems_unmounted(one.facts.places)
    ]
    sharing = tier_check.sharing(probe, suspects) if probe else frozenset()
    several = sharing if len(sharing) > 1 else frozenset()
    rows = rules.judge(told, replace(wanted, sharing=several))
    rows += tier_check.judge_tier(probe, suspects) if probe else []
    rows += health.judge_health(told)
    rows += judge_mirrors(told)
    rows += gpus_of_cells.judge_gpus_of_cells(told, plan)
    rows += memory_of_cells.judge_memory_of_cells(told, plan, measured)
    rows += space.check_space(told, plan, measured, wanted.resources.disk, verified)
    others = {box: one.others for box, one in told.items() if one.others}
    return Report(tuple(rows), {box: one.facts for box, one in told.items()}, others)


def present(site: Site, report: Report, then: Command, *, as_json: bool) -> None:
    """The table and what to do next, or one JSON document: run, is_refused, rows, facts."""
    if as_json:
        found = {"run": site.plan.run, "is_refused": report.is_refused}
        show.json_document("audit", found | {"rows": list(report.rows), "facts": report.facts})
        return
    # The worst first: a terminal may have no room for the last ones.
    groups = sorted(of_alike_boxes(report), key=lambda group: _ORDER.index(group[1].verdict))
    rows = [
        (_boxes(boxes), row_word(row.what), row_word(row.verdict), row.found, row.reason)
        for boxes, row in groups
    ]
    show.table(
        _("{run}: audit", run=site.plan.run),
        ("box", "what", "verdict", "found", "reason"),
        rows,
        names=(),
        first_to_go=("found",),
    )
    show.say(_end(report.rows, then))


def _then(site: Site, view: RunView) -> Command:
    """What the run needs, of which other verbs say the same."""
    command = next_step(view, site).command
    return (
        command if has_begun(view) and command else before_launch(site.project, needs_audit=False)
    )


def of_alike_boxes(report: Report) -> list[tuple[str, Row]]:
    """What several boxes have in common is one row: ten boxes alike are read as one."""
    boxes: dict[Row, list[str]] = {}
    for row in report.rows:
        boxes.setdefault(replace(row, box=""), []).append(row.box)
    everyone = list(report.facts) if len(report.facts) > 1 else []
    return [
        (rules.ALL if names == everyone else ", ".join(names), row) for row, names in boxes.items()
    ]


def line(boxes: str, row: Row) -> Sentence:
    """A row in one line, for a log."""
    said = {"verdict": row_word(row.verdict), "boxes": _boxes(boxes), "what": row_word(row.what)}
    if not row.reason:
        return _("{verdict}: {boxes}: {what}: {found}", **said, found=row.found)
    return _(
        "{verdict}: {boxes}: {what}: {found}. {reason}",
        **said,
        found=row.found,
        reason=show.typed(row.reason),
    )


def _boxes(boxes: str) -> str:
    return row_word(boxes) if boxes == rules.ALL else boxes


def _end(rows: Sequence[Row], then: Command) -> Message:
    """How it ended, and the next command, which is `then` where nothing is refused."""
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in _ORDER}
    if count["refuse"]:
        boxes = ", ".join(sorted({row.box for row in rows if row.verdict == "refuse"}))
        refused = _(
            "{n} {n:problem|problems} ({boxes}). Fix {n:it|them}, then",
            n=count["refuse"],
            boxes=_boxes(boxes),
        )
        return Message(refused, Command("audit"))
    if count["warn"]:
        warned = _("no problems, {n} {n:warning|warnings}. Next", n=count["warn"])
        return Message(warned, then)
    return Message(_("no problems. Next"), then)


def skew_s(before: str, at: str, after: str) -> float:
    """How far a clock is ahead that said `at` between two looks at ours; 0 where it may be right.

    All are UTC as in files. An answer may take minutes, so this is the least that is certain.
    """
    first, told, last = map(timestamp.parse_utc, (before, at, after))
    outside = max(told - last, timedelta()) - max(first - told, timedelta())
    return outside.total_seconds()


def _ask_all(ask: Ask, plan: Plan, wanted: Wanted, names: Sequence[str]) -> dict[str, Told]:
    left = list(names)

    def ask_one(box: str) -> Told:
        answer = _ask(ask, plan, wanted, box)
        left.remove(box)
        part.doing = some(left, _MOST_NAMED)
        part.add()
        return answer

    with show.progress(_("audit"), THINGS) as bar:
        part = bar.part(len(names))
        part.doing = some(left, _MOST_NAMED)
        return dict(zip(names, side_by_side.each(names, ask_one), strict=True))


def _ask(ask: Ask, plan: Plan, wanted: Wanted, box: str) -> Told:
    before = timestamp.utc_now()
    credentials = plan.box(box).credentials
    names = (*dict.fromkeys((*wanted.packages.names, *health.CHANGES_NUMBERS)),)
    # Without what is filled in for a cell: no mirror stands in that.
    env = plan.env | {name: value for name, value in plan.job_env.items() if "{" not in value}
    env = {name: value for name, value in env.items() if name in MIRRORS}
    has_pip = bool(plan.install or plan.setup)
    python, hook = plan.training_python, wanted.hook
    question = box_asks.Audit(credentials, python, hook, names, env, has_pip)
    asked = (question, box_asks.SeeOthers())
    try:
        replies = Replies(box, asked, ask(box, several(asked), timeout_s=ASK_TIMEOUT_S))
        facts = replies.to(question)
    except (BoxcarError, OSError) as error:
        return Told(None, why=words_of(error))
    told = Told(facts, skew_s(before, facts.at, timestamp.utc_now()))
    with contextlib.suppress(BoxcarError):
        told = replace(told, others=replies.to(asked[1]))
    return told


def _probe(ask: Ask, told: dict[str, Told], wanted: Wanted) -> tier_check.Probe | None:
    """Tried where boxes share a tier, and only where it is there: nothing is made in its place."""
    if not wanted.has_mounted_tier:
        return None
    boxes = [box for box, one in told.items() if one.facts and _has_tier(one.facts)]
    return tier_check.probe(ask, boxes) if len(boxes) > 1 else None


def _wanted(site: Site) -> Wanted:
    detach = site.project.profile.detach
    return Wanted(
        launcher=site.plan.launcher,
        detach=tuple(name for name in (detach.primary, detach.fallback) if name),
        has_mounted_tier=site.has_mounted_tier,
        resources=site.project.job.resources,
        packages=_packages(site),
        hook=site.project.profile.hook,
    )


def _packages(site: Site) -> AskedPackages:
    plan, project = site.plan, site.project
    if plan.requirements is None:
        return AskedPackages()
    text = (project.root / project.job.code / plan.requirements).read_text(errors="replace")
    lines = requirements.read_lines(text)
    return AskedPackages(lines, is_installed=plan.install, has_setup=plan.setup is not None)


def _has_tier(facts: Facts) -> bool:
    durable = facts.places.durable
    return durable.is_writable and (durable.is_there or durable.mount != "/")


# What was looked at, and verdicts.
_NAMES = {
    "ok": mark("OK"),
    "warn": mark("warn"),
    "refuse": mark("refuse"),
    "all": mark("all"),
    "box": mark("box"),
    "clock": mark("box clock"),
    "GPU": mark("GPU"),
    "training Python": mark("training Python"),
    "memory": mark("memory"),
    memory_of_cells.MEMORY: mark("memory of cells"),
    memory_of_cells.SHM: mark("/dev/shm of cells"),
    "cells at once": mark("cells at once"),
    "GPUs alike": mark("GPUs alike"),
    "GPU health": mark("GPU health"),
    "processes": mark("processes"),
    "mirror": mark("mirror"),
    "driver": mark("driver"),
    "cache": mark("cache"),
    "versions alike": mark("versions alike"),
    "host name": mark("host name"),
    "data tier": mark("data tier"),
    "durable tier": mark("durable tier"),
    "credentials": mark("credentials"),
    "detach": mark("detach"),
    "tier shared": mark("tier shared"),
    "claims": mark("claims"),
    "other runs": mark("other runs"),
    "second home": mark("second home"),
    "request": mark("request"),
    "time": mark("time limit"),
    "partition": mark("partition"),
    "array": mark("array"),
    "resume": mark("resume"),
    "node": mark("node"),
    "hook": mark("hook"),
    "GPUs": mark("GPUs"),
    # Of Kubernetes, whose own words Job and Kueue are.
    "claim": mark("PersistentVolumeClaim"),
    "access": mark("access"),
    "pod": mark("pod"),
    "quota": mark("quota"),
    "tier from nodes": mark("tier from nodes"),
    "file locks": mark("file locks"),
    "room": mark("free space"),
    "job data": mark("job data"),
    "data from URLs": mark("data from URLs"),
    "data": mark("data"),
    "durable": mark("durable"),
}


def row_word(text: str) -> str:
    """As a person reads it; one of a newer version stays as it is."""
    return Sentence(_NAMES[text]) if text in _NAMES else text
