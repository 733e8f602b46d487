"""`when_done: end`: whether a box of this platform can stop itself, and what plan says. Pure."""

from __future__ import annotations

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.shared.cell import duration
from boxcar.shared.files.plan import IdleEnd
from boxcar.shared.sentence import Sentence, _


def of_job(job: Job, profile: Profile) -> IdleEnd | None:
    """None where the job asks for nothing, or nothing bills. By no means where it can only tell."""
    if job.when_done != "end" or not profile.is_billed or profile.is_cluster:
        return None
    stop = profile.meter.stop
    if stop is None or why_only_told(profile):
        return IdleEnd(job.after_idle)
    return IdleEnd(job.after_idle, stop.from_box, None if stop.from_box else stop.own_key)


def why_only_told(profile: Profile) -> Sentence | None:
    """Why no box of this platform may stop itself; None where each may."""
    stop, tier = profile.meter.stop, profile.storage.durable or profile.storage.data
    if stop is None or not stop.is_reversible or not (stop.from_box or stop.own_key):
        return _("no box of {profile} can stop itself by a reversible verb", profile=profile.name)
    if tier not in profile.preserved_by("stop"):
        return _(
            "{tier}, which has the results, does not survive {verb}", tier=tier, verb=stop.verb
        )
    return None


def sentence_of_idle_end(job: Job, profile: Profile) -> Sentence | None:
    """What plan says of it; None where nothing ends by itself."""
    asked = of_job(job, profile)
    if asked is None:
        return None
    time = duration.spell_duration(asked.after_s)
    if why := why_only_told(profile):
        return _("after {time} idle it is only told: {why}", time=time, why=why)
    verb = profile.meter.stop.verb if profile.meter.stop else ""
    return _(
        "after {time} idle and 10 min of notice each box stops itself: {verb} (reversible), once "
        "every cell that ran there is proven",
        time=time,
        verb=verb,
    )
