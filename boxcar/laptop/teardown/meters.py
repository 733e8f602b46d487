"""Which boxes of a run may still bill although Boxcar's own part of their end is done.

A meter counts as ended where somebody saw it end: the box was told the platform's own verb and fell
silent, the provider's own list had it no more, or a person says so (`down --seen-off`). All else
is open, also a box that was given up: it answers never, which says nothing of its bill.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.common.home import Home
from boxcar.laptop.common.near import pick, the_run
from boxcar.laptop.hosts import host_keys
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.rentals import prices_of_boxes
from boxcar.laptop.teardown.gate import Steps
from boxcar.shared.errors import Command, DamagedError, InputError, Message
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _


@dataclass(frozen=True)
class OpenMeter:
    """A box whose meter nobody saw end. `id`: the platform's, where it is known; `rate`: of an
    hour, as it was typed, such as `1.98 CNY/h`; `verb` and `where`: what a person clicks or types.
    `told_at`: when the box was told its own verb, of which nobody knows whether it did it.
    `stopped_at`: since when it is stopped, so that its disk bills alone; `rate` is then the disk's.
    """

    box: str
    id: str | None
    rate: str | None
    verb: str
    where: str
    told_at: str | None = None
    stopped_at: str | None = None

    @property
    def sentence(self) -> Sentence:
        """Without the box: `may still bill 1.98 CNY/h (id 23): destroy (vastai destroy ...)`."""
        if self.stopped_at:
            said = _(
                "is stopped since {at}; its disk bills until it is destroyed. {verb}: {where}",
                at=self.stopped_at[:16],
                verb=self.verb,
                where=self.where,
            )
        elif self.told_at:
            said = _(
                "was told to shut down at {at}; nobody saw it end. {verb}: {where}",
                at=self.told_at[:16],
                verb=self.verb,
                where=self.where,
            )
        else:
            said = _("{verb}: {where}", verb=self.verb, where=self.where)
        return _(
            "may still bill {rate} ({id}). {what}",
            rate=self.rate or _("at an unknown price"),
            id=_("id {id}", id=self.id) if self.id else _("its id is not known here"),
            what=said,
        )


def open_meters(project: Project, teardown: Teardown | None) -> tuple[OpenMeter, ...]:
    """In the plan's order; none before Boxcar's part on a box is done, or where nothing bills."""
    if teardown is None or not project.profile.is_billed:
        return ()
    prices = prices_of_boxes(project)
    return tuple(
        _open_meter(project, teardown, box, prices) for box in _open_boxes(project, teardown)
    )


def _open_boxes(project: Project, teardown: Teardown) -> list[str]:
    planned = [box.name for box in project.plan.boxes]
    begun = {*teardown.boxes, *teardown.gone} - {project.plan.durable_dir}
    closed = {*teardown.off, *teardown.seen_gone, *teardown.seen_off}
    known = [*planned, *sorted(begun - {*planned})]
    return [box for box in known if box in begun and box not in closed]


def _open_meter(
    project: Project, teardown: Teardown, box: str, prices: dict[str, str]
) -> OpenMeter:
    id_ = host_keys.instance_id(Home(project.root), box)
    meter, stopped_at = project.profile.meter, teardown.stopped.get(box)
    verb = meter.destroy if stopped_at and meter.destroy else project.profile.meter_stop
    where = _("{where}", where=verb.where.replaced("<id>", id_ or "<id>"))
    rate = meter.off_price if stopped_at else prices.get(box)
    told_at = teardown.told.get(box)
    return OpenMeter(box, id_, rate, verb.verb, where, told_at, stopped_at)


def open_meters_of(project: Project, results: ResultPaths) -> tuple[OpenMeter, ...]:
    """The same of the teardown as it lies there; one that cannot be read is `down`'s to tell."""
    try:
        return open_meters(project, receipt.read_teardown(results.teardown))
    except (OSError, DamagedError):
        return ()


def see_off(project: Project, results: ResultPaths, boxes: Sequence[str]) -> Teardown:
    """Write down that a person saw the meters of these boxes end. Raises InputError for a box on
    which nothing was ended yet, or of which this is known.
    """
    teardown = receipt.read_teardown(results.teardown)
    known = [meter.box for meter in open_meters(project, teardown)]
    if teardown is None or not known:
        raise InputError(
            _("--seen-off {box}: no meter of this run is open. To see what is", box=boxes[0]),
            Command("status"),
        )
    chosen = pick(boxes, known, what="box", of=the_run(teardown.run))
    steps = Steps(results.teardown, teardown)
    for box in chosen:
        steps.seen_off(box)
    return steps.now


def seen_off_command(meters: Sequence[OpenMeter], of_run: Sequence[str] = ()) -> Command:
    """What a person types once the console shows that these boxes are gone. `of_run`: the words
    that name the run, where none was typed.
    """
    words = (word for meter in meters for word in ("--seen-off", meter.box))
    return Command("down", (*of_run, *words))


def meter_rows(meters: Sequence[OpenMeter], of_run: Sequence[str] = ()) -> list[Message]:
    """What to say of the open meters, and how to say that they ended; none where none is open."""
    if not meters:
        return []
    head = _("ours is done, yours is open: {n} {n:box|boxes} may still bill", n=len(meters))
    rows = [Message(_("{head}: {text}", head=meter.box, text=meter.sentence)) for meter in meters]
    seen = _("When the console shows {n:it|them} ended", n=len(meters))
    return [Message(head), *rows, Message(seen, seen_off_command(meters, of_run))]
