"""`invoke check-profiles`: which facts are older than six months, and which tiers would be lost.

Looks at every profile that can be named in a project: its own and the shipped ones. Prices, clocks
and paths drift; a fact that nobody has looked at for half a year is a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.profiles.profile import Profile, known, load_file
from boxcar.laptop.project.profiles.schema import GROUPS
from boxcar.shared.errors import InputError, Message, counted
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

MOST_MONTHS = 6


@dataclass(frozen=True)
class Stale:
    """A group of facts that has to be looked at again; `at` is the file and line of its month."""

    profile: str
    group: str
    verified: str
    confidence: str
    months: int
    at: str


def check_profiles(root: Path, *, as_json: bool = False, today: date | None = None) -> int:
    """Name what is stale and what would be lost; 1 where there is such a thing, else 0.

    `root` is the project's folder. Raises InputError for profiles that cannot be read, after the
    others were looked at.
    """
    profiles, unreadable = _load_all(root)
    found = _once(
        stale for profile in profiles for stale in stale_facts(profile, today or date.today())
    )
    lost = [problem for profile in profiles for problem in survival.survival_problems(profile)]
    if as_json:
        show.json_document(
            "check-profiles",
            {
                "profiles": [profile.name for profile in profiles],
                "stale": found,
                "lost": lost,
                "unreadable": unreadable,
            },
        )
    else:
        _tell(profiles, found, lost)
    if unreadable:
        raise InputError(unreadable)
    return 1 if found or lost else 0


def stale_facts(profile: Profile, today: date) -> Iterator[Stale]:
    """The groups that were checked over MOST_MONTHS ago, or in a month that is still to come."""
    for name in GROUPS:
        group = getattr(profile, name)
        months = _months_ago(group.verified, today)
        if not 0 <= months <= MOST_MONTHS:
            at = profile.at(name, "verified")
            yield Stale(profile.name, name, group.verified, group.confidence, months, at)


def _load_all(root: Path) -> tuple[list[Profile], list[Message]]:
    profiles: list[Profile] = []
    unreadable: list[Message] = []
    for _name, path in sorted(known(root).items()):
        try:
            profiles.append(load_file(path, root))
        except InputError as error:
            unreadable += error.messages
    return profiles, unreadable


def _once(found: Iterator[Stale]) -> list[Stale]:
    """A month that several profiles take over from one file is one fact."""
    first: dict[str, Stale] = {}
    for stale in found:
        first.setdefault(stale.at, stale)
    return list(first.values())


def _months_ago(verified: str, today: date) -> int:
    year, month = map(int, verified.split("-"))
    return (today.year - year) * 12 + today.month - month


def _tell(profiles: list[Profile], found: list[Stale], lost: list[str]) -> None:
    rows = [(s.profile, s.group, s.verified, _age(s.months), s.confidence, s.at) for s in found]
    if rows:
        columns = ("profile", "group", "verified", "age", "confidence", "at")
        show.table("facts to check again", columns, rows)
    for problem in lost:
        show.line(problem)
    counts = {"n": len(profiles), "old": len(found), "lost": len(lost)}
    show.say(
        _(
            "{n} {n:profile|profiles}: {old} {old:group|groups} of facts older than {months} "
            "months; {lost} durable {lost:tier|tiers} would be lost",
            **counts,
            months=MOST_MONTHS,
        )
    )


def _age(months: int) -> str:
    return "not yet" if months < 0 else counted(months, "month")
