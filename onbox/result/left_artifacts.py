"""What a cell has left of each artifact of its job, and what was taken of each pattern.

`checkpoints/*.ckpt` is every file that matches, or the newest (take: newest), `checkpoint-*/` every
folder. Which they are is decided here once, and the manifest says it to everybody else. What would
take the place of a file of the agent's is none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.resume_match import is_of_folders, is_pattern
from boxcar.shared.cell import terms
from boxcar.shared.files.plan import NEWEST, Artifact
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, chained, mark
from onbox.machine.place import Place
from onbox.result import left
from onbox.result.left import Left


@dataclass(frozen=True)
class LeftArtifacts:
    """What a cell has left in `out`, by artifact; `matches` are those of the patterns."""

    out: Path
    by_path: dict[str, Left]
    matches: dict[str, tuple[str, ...]]

    @property
    def missing(self) -> list[str]:
        """The artifacts of which it wrote nothing; where that is all, with what was left out."""
        return [
            _("{path} ({why})", path=path, why=chained(mark("{first}; {second}"), it.left_out))
            if it.left_out
            else path
            for path, it in self.by_path.items()
            if not (it.files or it.problems)
        ]

    @property
    def problem(self) -> str:
        """What keeps it from being published, and where a person puts it right; '' for nothing."""
        found = dict.fromkeys(text for it in self.by_path.values() for text in it.problems)
        text = chained(mark("{first}; {second}"), [*found])
        return (
            _("{problem}. It is kept in {folder}", problem=text, folder=self.out) if found else ""
        )

    @property
    def left_out(self) -> list[str]:
        """Sentences, each with the name of what is not published."""
        found = dict.fromkeys(what for it in self.by_path.values() for what in it.left_out)
        return [_("{what}; it is left out", what=what) for what in found]

    @property
    def files(self) -> dict[str, Path]:
        return {name: path for it in self.by_path.values() for name, path in it.files.items()}


def look(place: Place, cell: str) -> LeftArtifacts:
    """What the cell has left of each artifact of the job."""
    artifacts = terms.terms_of_cell(place.plan, cell).artifacts
    return look_at(place.scratch.out(cell), artifacts, cell, place.plan.links)


def look_at(
    out: Path, artifacts: Sequence[Artifact], cell: str, links: Collection[str] = ()
) -> LeftArtifacts:
    """What is there of these artifacts below `out`; the job's own `links` are none of it."""
    if left.is_elsewhere(out):
        why = _("{{out}} is a link now, to what is not the cell's: write into the folder itself")
        return LeftArtifacts(out, {item.path: Left(problems=[why]) for item in artifacts}, {})
    named = {item.path: _named(out, item.path, links) for item in artifacts}
    ours = {
        path: [name for name in names if paths.is_own_name(name, cell)]
        for path, names in named.items()
    }
    taken = {item.path: _taken(named[item.path], ours[item.path], item) for item in artifacts}
    found = {path: _left(out, names) for path, names in taken.items()}
    for path, names in ours.items():
        there = (name for name in names if (out / name).exists())
        found[path].left_out.extend(
            _("{name} {why}: rename it", name=name, why=paths.OWN_NAME) for name in there
        )
    patterns = {path for path in named if is_pattern(path)}
    return LeftArtifacts(
        out, found, {path: names for path, names in taken.items() if names and path in patterns}
    )


def _named(out: Path, artifact: str, links: Collection[str]) -> tuple[str, ...]:
    return of_pattern(out, artifact, links) if is_pattern(artifact) else (artifact,)


def _taken(named: Sequence[str], ours: Collection[str], artifact: Artifact) -> tuple[str, ...]:
    found = tuple(name for name in named if name not in ours)
    return found[:1] if artifact.take == NEWEST else found


def of_pattern(out: Path, pattern: str, links: Collection[str] = ()) -> tuple[str, ...]:
    """The newest first; links count as what they lead to, and one that dangles as a file. Without
    those that are the job's `links`.
    """
    wants_folders = is_of_folders(pattern)
    names = (name for name in resume_match.newest_first(out, pattern) if name not in links)
    return tuple(name for name in names if (out / name).is_dir() == wants_folders)


def _left(out: Path, names: Sequence[str]) -> Left:
    """Of one artifact, which may be several files or folders."""
    whole = Left()
    for found in (left.look(out, name) for name in names):
        whole.files.update(found.files)
        whole.problems.extend(found.problems)
        whole.left_out.extend(found.left_out)
    return whole
