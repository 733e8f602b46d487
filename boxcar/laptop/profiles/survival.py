"""Does the durable tier outlive what `down` does to the meter? Pure; `plan` and the linter ask.

Not covered: whether the tier is really there. That the audit finds out on the box.
"""

from __future__ import annotations

from boxcar.laptop.profiles.profile import Profile
from boxcar.laptop.profiles.schema import OWN_SCOPES
from boxcar.shared.files.plan import EACH_BOX, Plan

_BECOMES = {
    "lose": "it is lost at once",
    "lose-later": "it is kept for a while and then lost",
    None: "nobody knows what becomes of it",
}


def problems(profile: Profile) -> list[str]:
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
        f"{profile.at('storage', 'durable')}: the tier {name!r}{where} does not survive "
        f"{stop.verb!r}, which ends the run ({profile.meter.down}): {becomes}. {_remedy(profile)}"
    ]


def survivors(plan: Plan, *, is_here: bool) -> dict[str, str]:
    """What is left of a run, by what has died. `is_here`: boxes and tier are on this machine."""
    running = (
        "running cells continue from their live checkpoint"
        if plan.resume
        else "running cells begin anew"
    )
    copied = f"; what was copied to {plan.second}, results and live checkpoints"
    second = copied if plan.second else ""
    if plan.durable_scope == EACH_BOX:
        brought = "what was pulled, or brought here by `watch` or cron, is not trained again"
        return {
            "a box": f"{brought}; {running} where it was brought{second}",
            "this machine": "what the boxes hold",
        }
    of_tier = "results that were pulled to this machine"
    return {
        "a box": f"published results, on the durable tier; {running}",
        "the durable tier": f"{of_tier}{second}",
        "this machine": "nothing: all of it is here"
        if is_here
        else "the run goes on; all is on the durable tier",
    }


def _remedy(profile: Profile) -> str:
    tiers = profile.storage.tiers
    survivors = [name for name in profile.meter_stop.preserves if _may_be_durable(profile, name)]
    survivors.sort(key=lambda name: tiers[name].scope in OWN_SCOPES)  # what all boxes see, first
    spelled = [f"{name} ({tiers[name].path or 'say its path'})" for name in survivors]
    own = f"in a profile of your own (extends: {profile.name})"
    if not survivors:
        return (
            f"No tier does; write {own}: storage: {{durable: null}}; then results go to the laptop"
        )
    return (
        f"Tiers that do: {', '.join(spelled)}. Write {own}: storage: {{durable: {survivors[0]}}}, "
        "or durable: null; then results go to the laptop as cells end"
    )


def _may_be_durable(profile: Profile, name: str) -> bool:
    tier = profile.storage.tiers[name]
    return name != profile.storage.data and tier.access == "read-write"
