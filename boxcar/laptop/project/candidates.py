"""`candidates` of job.yaml: which profile is taken where a person names none, and why.

The first whose profile can be read, whose boxes Boxcar can reach, whose durable tier outlives the
meter, and that has what `resources` ask for. What a profile does not say refuses nothing here: the
audit looks at the boxes themselves. Decided anew each time, from files only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.profiles import survival
from boxcar.laptop.profiles.profile import Profile, known, load_profile
from boxcar.laptop.project import resources
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.resources import Offer, Resources
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import InputError
from boxcar.shared.message import Message, joined
from boxcar.shared.record import dataclass

# Where a job names no candidate.
DEFAULT = "local"
# What one word stands for, unless a profile of the project has that name.
GROUPS = {"china": ("gpushare", "matpool", "featurize", "lanrui")}


@dataclass(frozen=True)
class Candidate:
    """One profile that the job would run on. At most one of a job's is taken."""

    profile: str
    is_taken: bool
    reason: Message


def chosen(job: Job, root: Path, kinds: Collection[str]) -> str:
    """The profile to use where none was named. Raises InputError with all reasons."""
    if not job.candidates:
        return DEFAULT
    found = resolve_candidates(job, root, kinds)
    for candidate in found:
        if candidate.is_taken:
            return candidate.profile
    raise InputError(
        [
            f"{job.at('candidates')}: none of them can be taken; or name one: --profile NAME",
            *(candidate.reason.under(f"  {candidate.profile}") for candidate in found),
        ]
    )


def resolve_candidates(job: Job, root: Path, kinds: Collection[str]) -> list[Candidate]:
    """Every candidate in the job's order, with the reason why it is taken or refused.

    `kinds` are the kinds of boxes that can be reached.
    """
    taken: str | None = None
    found = []
    for name in _names(job, root):
        reason = _why_not(name, job.resources, root, kinds)
        if reason:
            found.append(Candidate(name, False, reason))
        elif taken:
            found.append(
                Candidate(name, False, Message(Sentence("planning.would_do", taken=taken)))
            )
        else:
            taken = name
            found.append(Candidate(name, True, Message(Sentence("planning.first_fitting"))))
    return found


def _names(job: Job, root: Path) -> list[str]:
    """The profiles that are meant, each once: a group's name stands for all of its own."""
    own = {path.stem for path in (root / "profiles").glob("*.yaml")}
    groups = {name: members for name, members in GROUPS.items() if name not in own}
    named = (each for name in job.candidates for each in groups.get(name, (name,)))
    return list(dict.fromkeys(named))


def unknown(job: Job, root: Path) -> list[Sentence]:
    """The candidates that name no profile at all: mostly a slip of the fingers."""
    there = known(root)
    return [
        Sentence(
            "planning.no_candidate",
            at=job.at("candidates"),
            name=name,
            near=did_you_mean(name, there),
            known=", ".join(sorted(there)),
        )
        for name in _names(job, root)
        if name not in there
    ]


def rows(candidates: Sequence[Candidate]) -> list[tuple[str, str, Message]]:
    """For a table: candidate, whether it is taken, and why."""
    return [
        (item.profile, Sentence("planning.taken") if item.is_taken else "-", item.reason)
        for item in candidates
    ]


def problems(
    profile: Profile, root: Path, wishes: Resources, kinds: Collection[str]
) -> list[Message]:
    """Why a job with these wishes cannot run on the profile; [] where it can. Pure."""
    kind = profile.connection.kind
    if kind not in kinds:
        return [
            Message(f"its boxes are of kind {kind!r}, which Boxcar can describe but not run yet")
        ]
    return [
        *map(Message, survival.survival_problems(profile)),
        *map(Message, resources.refusals(wishes, offer(profile))),
        *_open_paths(profile, root),
    ]


def offer(profile: Profile) -> Offer:
    """The most that its boxes can have. Most platforms rent out what you choose, and say none."""
    tier = profile.storage.tiers[profile.storage.data]
    if tier.size_gb is None or tier.expandable:
        return Offer()
    return Offer(disk_bytes=tier.size_gb * 10**9)


def _why_not(name: str, wishes: Resources, root: Path, kinds: Collection[str]) -> Message | None:
    try:
        found = problems(load_profile(name, root), root, wishes, kinds)
    except InputError as error:
        found = list(error.messages)
    return joined(found, "; ") if found else None


def _open_paths(profile: Profile, root: Path) -> Sequence[Message]:
    """A path that only the person's own account tells has to be said first."""
    try:
        profile.data_dir(root, "box")
        profile.durable_dir(root)
    except InputError as error:
        return error.messages
    return ()
