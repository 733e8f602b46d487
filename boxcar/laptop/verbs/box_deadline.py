"""The deadline that `up` lays on each box that it rented: by the box's own key, reversible only."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.common import show
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.project.idle_end import why_only_told
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.project import Project
from boxcar.shared.cell import duration
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.sentence import _
from boxcar.shared.wire.box_asks import KeepDeadline

# Longer than a script says nothing: a long epoch, an evaluation, a download of data.
QUIET_S = 6 * 3600
# Apart from what moves there: a script that logs for ever bills for ever.
LEAST_MOST_S = 7 * 24 * 3600


def most_s(hours: float | None) -> int:
    """The hard cap: twice what was asked for, and a week at least."""
    return max(LEAST_MOST_S, round(2 * (hours or 0) * 3600))


def sentence_of_deadline(profile: Profile, hours: float | None) -> str:
    """What the question of `up` says of it."""
    if why := _why_none(profile):
        return _("nothing stops a box by itself, also while you sleep: {why}", why=why)
    return _(
        "a box stops itself (its disk stays, and bills) when nothing moves there for {quiet}, and "
        "after {most} in any case",
        quiet=duration.spell_duration(QUIET_S),
        most=duration.spell_duration(most_s(hours)),
    )


def lay_deadlines(project: Project, boxes: Sequence[str], hours: float | None) -> None:
    """On each of these; where one cannot have it, that is said. A box that has one keeps it."""
    profile = project.profile
    stop = profile.meter.stop
    if not boxes or _why_none(profile) or stop is None or stop.own_key is None:
        return
    question = KeepDeadline(stop.own_key, QUIET_S, most_s(hours))
    with open_site(project, show.say) as site:
        for box in boxes:
            try:
                problem = site.ask(box, question).problem
            except (BoxcarError, OSError) as error:
                problem = words_of(error)
            if problem:
                show.alarm(
                    _(
                        "{box}: no deadline lies on it, and nothing stops it by itself: {why}",
                        box=box,
                        why=problem,
                    )
                )


def _why_none(profile: Profile) -> str | None:
    """A program of the box's own needs no key, and no platform that `up` rents on has one."""
    if why := why_only_told(profile):
        return why
    stop = profile.meter.stop
    if stop is None or stop.own_key is None:
        return _("no box of {profile} has a key of its own", profile=profile.name)
    return None
