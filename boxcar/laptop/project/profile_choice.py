"""Which profile a verb works with where a person names none, and why.

A run stays where it was first tried: who audits, smokes, pushes or launches it with a profile and
then forgets `--profile` does not start it on this machine, also not where its results were removed
since. Only `--profile local` does that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.laptop.common import home
from boxcar.laptop.common.home import Home
from boxcar.laptop.project import candidates, launch_record
from boxcar.laptop.project.job import Job
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence, sentence_or_text
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec
from boxcar.shared.paths import ResultPaths
from boxcar.shared.record import dataclass

FILE = "profile.json"
HERE = candidates.DEFAULT
AUDITED, SMOKED, PUSHED, LAUNCHED = "audited", "smoked", "pushed", "launched"


@dataclass(frozen=True)
class Choice:
    """A profile's name, and why it is this one: `profile NAME: WHY`."""

    profile: str
    why: str

    @property
    def sentence(self) -> Sentence:
        return Sentence("planning.profile", name=self.profile, why=self.why)


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
        return Choice(named, Sentence("planning.named"))
    launched = launch_record.profiles_of(results)
    if elsewhere := [profile for profile in launched if profile != HERE]:
        return Choice(elsewhere[-1], Sentence("planning.launched_with"))
    if first := _first_use(results):
        return Choice(first.profile, Sentence("planning.first_used", done=_done(first.done)))
    if before := [one for one in home.profiles_of(job.name, root) if one != HERE]:
        return Choice(before[-1], Sentence("planning.launched_before"))
    if default:
        return Choice(default, Sentence("planning.settings"))
    if launched:
        return Choice(HERE, Sentence("planning.launched_here"))
    taken = candidates.chosen(job, root, kinds)
    if job.candidates:
        return Choice(taken, Sentence("planning.first_candidate"))
    if met := [box for box in job.queues.values() if Home(root).host(box).exists()]:
        raise InputError(Sentence("planning.met_elsewhere", box=met[0], run=job.name))
    return Choice(taken, Sentence("planning.here"))


def _done(done: str) -> str:
    return sentence_or_text(f"planning.{done}", done)


def _first_use(results: ResultPaths) -> FirstUse | None:
    path = results.root / FILE
    try:
        return codec.from_document(FirstUse, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except DamagedError as error:
        raise DamagedError(
            f"{error}. It says where this run is: name it (--profile), or remove that file"
        ) from error
