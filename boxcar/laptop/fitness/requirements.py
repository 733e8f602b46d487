"""Whether a training's Python has what the job's `requirements` ask for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from boxcar.shared.errors import some
from boxcar.shared.files.plan import HELD_PACKAGES
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_MOST_NAMED = 8
# A verdict, what was found, and why.
Judged = tuple[Literal["ok", "warn", "refuse"], Sentence, Sentence | str]


@dataclass(frozen=True)
class AskedPackages:
    """The lines of `requirements`; whether `install` brings them, and whether `setup` may."""

    lines: tuple[Requirement, ...] = ()
    is_installed: bool = False
    has_setup: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.name for line in self.lines))


def read_lines(text: str) -> tuple[Requirement, ...]:
    """Those that name a package. Options, addresses and other files are pip's own matter.

    >>> [line.name for line in read_lines("einops>=0.7  # for the mixer\\n-r more.txt")]
    ['einops']
    """
    # Late, here and below: every verb imports this module, and few jobs name packages.
    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split(" #")[0].split(" --")[0].strip()
        try:
            found.append(Requirement(words))
        except InvalidRequirement:
            continue
    return tuple(found)


def judge_packages(
    python: str, has: Mapping[str, str | None], asked: AskedPackages
) -> Iterator[Judged]:
    """`has`: the version of each name that was asked for, None where it is not there."""
    if not asked.lines:
        return
    lacks = [line for line in asked.lines if not _fits(line, has.get(line.name), python)]
    told = _("{n} {n:package|packages}", n=len(asked.lines))
    if held := [
        line for line in lacks if asked.is_installed and line.name.lower() in HELD_PACKAGES
    ]:
        why = _(
            "{packages}: install keeps these as the image has them. Correct that line, or take "
            "another image",
            packages=_named(held, has),
        )
        yield "refuse", told, why
    elif not lacks:
        yield "ok", told, ""
    elif asked.is_installed:
        text = _("{n} to be installed before the first cell", n=len(lacks))
        yield "ok", text, ""
    else:
        why = _("not there: {packages}", packages=_named(lacks, has))
        if not asked.has_setup:
            why = _("{why}. Install them, or write install: yes in job.yaml", why=why)
        yield ("warn" if asked.has_setup else "refuse"), told, why


def _fits(line: Requirement, version: str | None, python: str) -> bool:
    environment = {"python_version": ".".join(python.split(".")[:2]), "sys_platform": "linux"}
    if line.marker and not line.marker.evaluate(environment | {"python_full_version": python}):
        return True
    if version is None:
        return False
    from packaging.version import InvalidVersion

    try:
        return line.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return True  # of a fork, whose versions only its makers can order


def _named(lacks: Sequence[Requirement], has: Mapping[str, str | None]) -> str:
    found = (f"{line.name}{line.specifier} ({has.get(line.name) or '-'})" for line in lacks)
    return some(list(found), _MOST_NAMED)
