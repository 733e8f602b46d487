"""`invoke repair`: which of the run's files on the durable tier are damaged, and what they were.

What is proven is put back with `--put-back`: from a copy on the laptop or from the
journal. The damaged file stays beside it. Without that flag nothing is changed.
"""

from __future__ import annotations

from boxcar.laptop.common import show
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import results_folder
from boxcar.shared.errors import BoxcarError, Command, InputError, Message, message_of
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire import run_asks

TIMEOUT_S = 600.0
ROUNDS = 3  # a disk that damages what is put back is not asked for ever
PUT_BACK = Command("repair", ("--put-back",))


@dataclass(frozen=True)
class Found:
    """What one box says of the tier that it sees; `problem` says why it could not."""

    box: str
    damages: tuple[run_asks.Damage, ...] = ()
    problem: Message | None = None


def repair(project: Project, *, is_to_write: bool = False, as_json: bool = False) -> int:
    """Returns 0 where nothing is damaged any more."""
    with open_site(project, show.say) as site:
        if results_folder.is_torn_down(site.results):
            raise InputError(
                _("run {run!r} was torn down; its results are here", run=site.plan.run)
            )
        with show.waiting(_("asking the boxes")):
            site.refresh()
            boxes = site.reach_tiers([box.name for box in site.plan.boxes])
            found = [_of_box(site, box, is_to_write=is_to_write) for box in boxes]
        if as_json:
            show.json_document("repair", {"run": site.plan.run, "boxes": found})
        else:
            _report(site, found)
        is_right = all(one.is_put_back for each in found for one in each.damages)
        return 0 if is_right and not any(each.problem for each in found) else 1


def _of_box(site: Site, box: str, *, is_to_write: bool, rounds: int = ROUNDS) -> Found:
    """A first question finds what is damaged, a second one has copies of that too."""
    try:
        reported = _copies(site, box, results_folder.copies_of_reports(site))
        damages = _ask(site, box, reported, is_to_write=False)
        more = results_folder.copies_of_damaged(site, (damage.path for damage in damages))
        known = reported | {
            name: (*reported.get(name, ()), *data)
            for name, data in _copies(site, box, more).items()
        }
        if damages:
            damages = _ask(site, box, known, is_to_write=is_to_write)
    except (BoxcarError, OSError) as error:
        return Found(box, problem=message_of(error))
    done = tuple(damage for damage in damages if damage.is_put_back)
    if not done or rounds == 1:
        return Found(box, damages)
    # A journal that can be read again tells of more: the manifests and claims that it names.
    rest = _of_box(site, box, is_to_write=is_to_write, rounds=rounds - 1)
    return Found(box, (*done, *rest.damages), rest.problem)


def _copies(site: Site, box: str, known: results_folder.Copies) -> results_folder.Copies:
    return (
        results_folder.copies_of_box(site, known, box)
        if site.plan.durable_scope == EACH_BOX
        else known
    )


def _ask(
    site: Site, box: str, known: results_folder.Copies, *, is_to_write: bool
) -> tuple[run_asks.Damage, ...]:
    return site.ask(box, run_asks.Repair(known, is_to_write), timeout_s=TIMEOUT_S).damages


def _report(site: Site, found: list[Found]) -> None:
    damages = [damage for each in found for damage in each.damages]
    if damages:
        rows = [(damage.path, _state(damage), damage.source) for damage in damages]
        show.table(
            _("{run}: damaged files", run=site.plan.run),
            ("file", "state", "proven by"),
            rows,
        )
    for damage in damages:
        which = (
            mark("{file}: {problem}; the damaged file is kept as {aside}")
            if damage.aside
            else mark("{file}: {problem}")
        )
        about = {"file": damage.path, "problem": damage.problem, "aside": damage.aside}
        show.say(Sentence(which, **about))
    for each in found:
        if each.problem:
            show.say(each.problem.under(each.box))
    if any(damage.source and not damage.is_put_back for damage in damages):
        show.say(Message(_("To restore the good copies"), PUT_BACK))
    if lost := [damage for damage in damages if damage.source is None]:
        nothing = _(
            "{n} damaged {n:file has|files have} no good copy here. What you can do", n=len(lost)
        )
        show.say(Message(nothing, Command("explain", ("--about", "reliability"))))
    if not damages and not any(each.problem for each in found):
        show.say(_("nothing is damaged"))


def _state(damage: run_asks.Damage) -> str:
    if damage.is_put_back:
        return _("restored")
    return _(mark("can be restored") if damage.source else mark("no good copy"))
