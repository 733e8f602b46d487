"""What a platform does by itself to a box that was stopped or given back, and how long until then.

From the profile's `clocks.counted`, counted from the moment when `down` saw the box fall silent or
came to its end. Pure. Not covered: what a balance or an end of a rental does, of which only the
provider knows when.
"""

from __future__ import annotations

from boxcar.laptop.common import units
from boxcar.laptop.project.profiles.schema import NO_SOURCE, Counted
from boxcar.laptop.project.project import Project
from boxcar.shared import timestamp
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

# It is told from the moment when so much of it is left; how urgent it is then, the view says.
HALF = 0.5
MARKS = (HALF, 0.2, 0.05, 0.0)
_DOES = {
    "wipe": mark("{box}: {what} wiped in {time} ({source})"),
    "release": mark("{box}: released with its disks in {time} ({source})"),
    "delete": mark("{box}: deleted in {time} ({source})"),
}
_DID = mark("{box}: {time} ago its time was up ({does}): look at the console ({source})")


@dataclass(frozen=True)
class Countdown:
    """`left_s` is below 0 once it is over; `after_s` is all of it."""

    box: str
    does: str
    at: str
    left_s: float
    after_s: float
    source: str
    path: str | None = None

    @property
    def left_share(self) -> float:
        return self.left_s / self.after_s

    @property
    def is_near(self) -> bool:
        return self.left_share <= HALF

    @property
    def mark(self) -> float:
        """The lowest of the marks that is passed: it is told once of each."""
        return min((one for one in MARKS if self.left_share <= one), default=1.0)

    @property
    def sentence(self) -> Sentence:
        has_source = self.source != NO_SOURCE
        source = _("source: {source}", source=self.source) if has_source else _("source: none")
        time = units.about(abs(self.left_s))
        if self.left_s <= 0:
            return Sentence(_DID, box=self.box, time=time, does=self.does, source=source)
        what = _("{path} is", path=self.path) if self.path else _("its disks are")
        return Sentence(_DOES[self.does], box=self.box, what=what, time=time, source=source)


def countdowns(project: Project, teardown: Teardown | None, now: str) -> tuple[Countdown, ...]:
    """The nearest first; none of a box that nobody saw stop."""
    if teardown is None:
        return ()
    found = [
        _countdown(box, clock, since, now)
        for clock in project.profile.clocks.counted
        for box, since in _since(project, teardown, clock).items()
    ]
    return tuple(sorted(found, key=lambda one: one.left_s))


def near_countdowns(project: Project, results: ResultPaths, now: str) -> tuple[Countdown, ...]:
    """Those of which half is over, of the teardown as it lies there."""
    try:
        teardown = receipt.read_teardown(results.teardown)
    except (OSError, DamagedError):
        return ()
    return tuple(one for one in countdowns(project, teardown, now) if one.is_near)


def _since(project: Project, teardown: Teardown, clock: Counted) -> dict[str, str]:
    boxes = [box.name for box in project.plan.boxes if box.name not in teardown.seen_gone]
    if clock.since == "stopped":
        is_stop = project.profile.meter.down == "stop"
        return {box: teardown.off[box] for box in boxes if is_stop and box in teardown.off}
    return {box: teardown.finished_at for box in boxes if teardown.finished_at}


def _countdown(box: str, clock: Counted, since: str, now: str) -> Countdown:
    left_s = clock.after_s - timestamp.seconds_between(since, now)
    at = timestamp.after(since, clock.after_s)
    return Countdown(box, clock.does, at, left_s, clock.after_s, clock.source, clock.path)
