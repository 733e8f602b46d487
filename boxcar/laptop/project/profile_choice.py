"""Which profile a verb works with where a person names none, and why.

A run stays where it was first tried: who audits, smokes, pushes or launches it with a profile and
then forgets `--profile` does not start it on this machine, also not where its results were removed
since. Only `--profile local` does that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.laptop.common import home
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.project import launches, resources
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.profiles.profile import Profile, known, load_profile
from boxcar.laptop.project.resources import Offer, Resources
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import SEMICOLON, DamagedError, InputError, Message, joined
from boxcar.shared.files import codec
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, known_word, mark

# `candidates` of job.yaml: which profile is taken where a person names none, and why.
#
# The first whose profile can be read, whose boxes Boxcar can reach, whose durable tier outlives the
# meter, and that has what `resources` ask for. What a profile does not say refuses nothing here:
# the audit looks at the boxes themselves. Decided anew each time, from files only.


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
            _(
                "{job}: no candidate profile fits; pick one with --profile NAME",
                job=job.at("candidates"),
            ),
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
                Candidate(
                    name, False, Message(_("would fit, but {taken} comes first", taken=taken))
                )
            )
        else:
            taken = name
            found.append(Candidate(name, True, Message(_("the first that fits the job"))))
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
        _(
            "{at}: no profile {name!r}{near}, so it is ignored. Remove it, or write one of: "
            "{known}",
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
        (item.profile, _("taken") if item.is_taken else "-", item.reason) for item in candidates
    ]


def problems(
    profile: Profile, root: Path, wishes: Resources, kinds: Collection[str]
) -> list[Message]:
    """Why a job with these wishes cannot run on the profile; [] where it can. Pure."""
    kind = profile.connection.kind
    if kind not in kinds:
        return [
            Message(
                _(
                    "its boxes are of kind {kind!r}, which Boxcar can describe but not run on yet",
                    kind=kind,
                )
            )
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
    return joined(found, SEMICOLON) if found else None


def _open_paths(profile: Profile, root: Path) -> Sequence[Message]:
    """A path that only the person's own account tells has to be said first."""
    try:
        profile.data_dir(root, "box")
        profile.durable_dir(root)
    except InputError as error:
        return error.messages
    return ()


FILE = "profile.json"
HERE = DEFAULT
AUDITED, SMOKED, PUSHED, LAUNCHED = "audited", "smoked", "pushed", "launched"
_DONE = (mark("audited"), mark("smoked"), mark("pushed"), mark("launched"))


@dataclass(frozen=True)
class Choice:
    """A profile's name, and why it is this one: `profile NAME: WHY`."""

    profile: str
    why: str

    @property
    def sentence(self) -> Sentence:
        return _("profile {name}: {why}", name=self.profile, why=self.why)


@dataclass(frozen=True)
class FirstUse:
    """`results/RUN/profile.json`: the profile that first took the run elsewhere, and by what."""

    FORMAT: ClassVar[str] = "first-use"
    VERSION: ClassVar[int] = 1

    profile: str
    done: str
    at: str
    extra: dict[str, Any] = field(default_factory=dict)


def remember_profile(results: ResultPaths, profile: str, done: str) -> None:
    """Note the first profile of another machine; what is noted already stays."""
    path = results.root / FILE
    if profile == HERE or path.exists():
        return
    with home.results_to(results.root):
        atomic.make_folder(results.root)
        atomic.write_whole(path, codec.to_document(FirstUse(profile, done, timestamp.utc_now())))


def choose_profile(
    job: Job,
    root: Path,
    results: ResultPaths,
    *,
    named: str,
    default: str,
    kinds: Collection[str],
) -> Choice:
    """`named` is what the person typed, `default` what their settings say; '' for neither.

    Raises InputError where no candidate fits, or where only a box of the job is known from
    elsewhere; DamagedError for a record that cannot be read.
    """
    if named:
        return Choice(named, _("set by --profile"))
    launched = launches.profiles_of(results)
    if elsewhere := [profile for profile in launched if profile != HERE]:
        return Choice(elsewhere[-1], _("this run was launched with it"))
    if first := _first_use(results):
        if first.done == LAUNCHED:  # it was refused: a launch that sends anything is recorded
            return Choice(
                first.profile,
                _("a launch with it was tried; for this machine: --profile local"),
            )
        return Choice(first.profile, _("this run was first {done} with it", done=_done(first.done)))
    if before := [one for one in home.profiles_of(job.name, root) if one != HERE]:
        return Choice(
            before[-1],
            _(
                "this run was launched with it from this machine (runs.jsonl), but its results "
                "are no longer here"
            ),
        )
    if default:
        return Choice(default, _("your settings (invoke.yaml or the environment) name it"))
    if launched:
        return Choice(HERE, _("this run was launched here"))
    taken = chosen(job, root, kinds)
    if job.candidates:
        return Choice(taken, _("the first of the job's candidates that fits"))
    if met := [box for box in job.boxes if Home(root).host(box).exists()]:
        raise InputError(
            _(
                "{box} was once reached over ssh (.boxcar/hosts), but nothing here records where "
                "the run {run} belongs. Name its platform with --profile NAME; to run it on this "
                "machine: --profile local",
                box=met[0],
                run=job.name,
            )
        )
    return Choice(taken, _("this machine, as no other is named for this run"))


def _done(done: str) -> str:
    return known_word(done, _DONE)


def _first_use(results: ResultPaths) -> FirstUse | None:
    path = results.root / FILE
    try:
        return codec.from_document(FirstUse, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except DamagedError as error:
        raise DamagedError(
            _(
                "{error}. This file records where the run is: name it with --profile, or remove "
                "the file",
                error=error,
            )
        ) from error
