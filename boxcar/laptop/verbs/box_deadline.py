"""The deadline that `up` lays on each box that it rented: by the box's own key, reversible only."""

from __future__ import annotations

from collections.abc import Collection

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.idle_end import why_only_told
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.providers import known
from boxcar.laptop.providers.rented_record import records_of
from boxcar.shared.cell import duration
from boxcar.shared.errors import words_of
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


def agreed_to(profile: Profile, hours: float | None) -> tuple[int, int]:
    """What the record keeps of that sentence: `quiet_s` and `most_s`, 0 where there is none."""
    return (0, 0) if _why_none(profile) else (QUIET_S, most_s(hours))


def lay_deadlines(site: Site, boxes: Collection[str]) -> None:
    """On each of these in whose question it was; where one cannot have it, that is said. A box
    that has one keeps it. One that was started again has none: `launch` lays it, too.
    """
    project, stop = site.project, site.project.profile.meter.stop
    provider = known.provider_of(project.profile, project.root)
    agreed = {
        one.box: one
        for one in records_of(project.root)
        if one.box in boxes and one.is_in_use and one.most_s and one.provider == provider
    }
    if not agreed or _why_none(project.profile) or stop is None or stop.own_key is None:
        return
    key = stop.own_key
    found, errors = side_by_side.each_or_why(
        [*agreed],
        lambda box: site.ask(box, KeepDeadline(key, agreed[box].quiet_s, agreed[box].most_s)),
    )
    said = {box: reply.problem for box, reply in found.items() if reply.problem}
    said |= {box: words_of(error) for box, error in errors.items()}
    for box, why in said.items():
        show.alarm(
            _(
                "{box}: no deadline lies on it, and nothing stops it by itself: {why}",
                box=box,
                why=why,
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
