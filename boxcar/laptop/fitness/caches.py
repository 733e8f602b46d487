"""Whether what a training downloads lies on a disk that goes with the box, while another one stays.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.shared.sentence import _
from boxcar.shared.wire.facts import Facts

# Of each library the variable for its cache, and where that is without it.
_CACHES = {"HF_HOME": "~/.cache/huggingface", "TORCH_HOME": "~/.cache/torch"}


def judge_caches(
    facts_of: Mapping[str, Facts | None], profile: Profile, env: Mapping[str, str]
) -> Iterator[Row]:
    """`env`: the profile's and the job's. Of a disk that no tier of the profile names, nothing."""
    tiers, durable = profile.storage.tiers, profile.storage.durable
    kept = profile.preserved_by(profile.meter.down)
    names = sorted(kept, key=lambda name: name != durable)
    stays = next((str(tiers[name].path) for name in names if tiers[name].path), None)
    if stays is None or not profile.is_billed:
        return
    for box, facts in facts_of.items():
        home = _home(facts) if facts else None
        for name, usual in _CACHES.items():
            at = env.get(name, usual)
            if at.startswith("~/"):
                at = f"{home}/{at[2:]}" if home else ""
            tier = _tier_of(at, profile)
            if tier is None or tier in kept:
                continue
            why = _(
                "goes with the box at {verb}, and what was downloaded is downloaded again. To keep "
                "it: env: {{{name}: {stays}/{folder}}}",
                verb=profile.meter_stop.verb,
                name=name,
                stays=stays,
                folder=PurePosixPath(usual).name,
            )
            yield Row(box, "cache", "warn", at, why)


def _home(facts: Facts) -> str | None:
    """The secrets lie in a hidden folder of it."""
    folder = PurePosixPath(facts.places.credentials.path)
    return str(folder.parent) if folder.name.startswith(".") else None


def _tier_of(at: str, profile: Profile) -> str | None:
    """The innermost; of two at one place the one that the profile uses."""
    tiers, used = profile.storage.tiers, (profile.storage.durable, profile.storage.data)
    found = [
        name
        for name, tier in tiers.items()
        if tier.path and at and PurePosixPath(at).is_relative_to(tier.path)
    ]
    depth = {name: len(PurePosixPath(str(tiers[name].path)).parts) for name in found}
    return max(found, key=lambda name: (depth[name], name in used), default=None)
