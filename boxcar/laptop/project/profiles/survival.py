"""Does the durable tier outlive what `down` does to the meter? Pure; `plan` and the linter ask.

Not covered: whether the tier is really there. That the audit finds out on the box.
"""

from __future__ import annotations

from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.profiles.schema import OWN_SCOPES
from boxcar.shared.files.plan import EACH_BOX, Plan
from boxcar.shared.sentence import Sentence, _, mark

_BECOMES = {
    "lose": _("it is deleted at once"),
    "lose-later": _("it is kept for a while, then deleted"),
    None: _("what happens to it is unknown"),
}


def survival_problems(profile: Profile) -> list[str]:
    """Why results would not survive on the durable tier, and which tier would do; [] where all is
    well. Without a durable tier they go to the laptop, and nothing has to survive.
    """
    name, tier = profile.storage.durable, profile.durable_tier
    # The local verb takes the tier itself away, after the gate, and no box takes it along.
    if tier is None or profile.connection.kind == "local":
        return []
    stop = profile.meter_stop
    if name in stop.preserves:
        return []
    becomes = _BECOMES[getattr(tier, profile.meter.down)]
    where = f" ({tier.path})" if tier.path else ""
    return [
        _(
            "{at}: the tier {name!r}{where} does not survive {verb!r}, the way this platform ends "
            "a run ({down}): {becomes}. {remedy}",
            at=profile.at("storage", "durable"),
            name=name,
            where=where,
            verb=stop.verb,
            down=profile.meter.down,
            becomes=becomes,
            remedy=_remedy(profile),
        )
    ]


def survivors(plan: Plan, *, is_here: bool) -> dict[str, str]:
    """What is left of a run, by what has died. `is_here`: boxes and tier are on this machine."""
    running = _(
        mark("running cells resume from their live checkpoint")
        if plan.resume
        else mark("running cells start over")
    )
    if plan.durable_scope == EACH_BOX:
        return {
            "a box": _and_copied(
                plan,
                _(
                    "results and checkpoints copied to this machine (by pull, `watch` or cron) "
                    "are not trained again; {running}",
                    running=running,
                ),
            ),
            "this machine": _("everything on the boxes"),
        }
    return {
        "a box": _("published results on the durable tier; {running}", running=running),
        "the durable tier": _and_copied(plan, _("results pulled to this machine")),
        "this machine": _(
            mark("nothing survives")
            if is_here
            else mark("the run continues; everything is on the durable tier")
        ),
    }


def _and_copied(plan: Plan, what: Sentence) -> Sentence:
    return (
        _(
            "{what}; also results and live checkpoints copied to {url}",
            what=what,
            url=plan.second,
        )
        if plan.second
        else what
    )


def _remedy(profile: Profile) -> str:
    tiers = profile.storage.tiers
    survivors = [name for name in profile.meter_stop.preserves if _may_be_durable(profile, name)]
    survivors.sort(key=lambda name: tiers[name].scope in OWN_SCOPES)  # what all boxes see, first
    spelled = [f"{name} ({tiers[name].path or 'say its path'})" for name in survivors]
    own = _("in a profile of your own (extends: {profile})", profile=profile.name)
    if not survivors:
        return _(
            "No tier survives it. Write {own}: storage: {{durable: null}}; results then go to the "
            "laptop",
            own=own,
        )
    return _(
        "These tiers survive it: {spelled}. Write {own}: storage: {{durable: {survivors}}}, or "
        "durable: null to bring results to the laptop as cells end",
        spelled=", ".join(spelled),
        own=own,
        survivors=survivors[0],
    )


def _may_be_durable(profile: Profile, name: str) -> bool:
    tier = profile.storage.tiers[name]
    return name != profile.storage.data and tier.access == "read-write"
