"""What a try left of its artifacts: whether it loads, as its box will load it, and what is lacking
in every cell although the short run wrote others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from boxcar.laptop.tryout.outcome import FAILED, MOST_NAMED, Outcome
from boxcar.laptop.tryout.stage import Stage, training
from boxcar.shared import paths
from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.file_kinds import BY_TORCH, kind_of
from boxcar.shared.artifacts.resume_match import is_of_folders, is_pattern
from boxcar.shared.artifacts.to_load import said_as, to_load
from boxcar.shared.cell import said, terms
from boxcar.shared.errors import some
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import BYTES_ONLY, LOG, NEWEST, Artifact, Cell, Plan
from boxcar.shared.process import load_child, strays
from boxcar.shared.process.load_child import UNCHECKED, Child, Manner
from boxcar.shared.sentence import _

_NOTHING = Manifest("", "", "", "", "", 0, "", "", 0, "", "", ())
_OF_MODELS = BY_TORCH | {"lightgbm", "mindspore", "onnx", "ubjson"}


def problem(stage: Stage, cell: Cell) -> str:
    """What a box would refuse of it (BAD-ART); '' for nothing. Raises BoxcarError, OSError."""
    plan, out = stage.project.plan, stage.out(cell.name)
    artifacts = terms.terms_of_cell(plan, cell.name).artifacts
    made = _as_published(plan, cell, out, artifacts)
    files = to_load(artifacts, made) if made.files else []
    if all(file.load == BYTES_ONLY for file in files):
        return ""
    child = Child(stage.python, Path("/"), str(training(stage.folder)))
    manner = Manner(
        code=said.import_paths(plan, cell.name, str(stage.code)), said_as=said_as(artifacts, made)
    )
    found = load_child.load(child, out, files, manner).findings.values()
    bad = [one for one in found if one.problems and one.kind != UNCHECKED]
    if not bad:
        return ""
    told = "; ".join(f"{one.path}: {', '.join(one.problems)}" for one in bad[:MOST_NAMED])
    return _("what it wrote is none that a box takes (BAD-ART): {problems}", problems=told)


def _as_published(plan: Plan, cell: Cell, out: Path, artifacts: Sequence[Artifact]) -> Manifest:
    files = tuple(
        FileRecord(name, (out / name).stat().st_size, "")
        for name in names(out)
        if not paths.is_own_name(name, cell.name)
    )
    patterns = (item for item in artifacts if is_pattern(item.path))
    matches = {item.path: tuple(_matches(plan, cell, out, item)) for item in patterns}
    return replace(_NOTHING, files=files, matches=matches)


def _matches(plan: Plan, cell: Cell, out: Path, item: Artifact) -> list[str]:
    found = [
        name
        for name in resume_match.newest_first(out, item.path)
        if (out / name).is_dir() == is_of_folders(item.path)
        and not (name in plan.links or paths.is_own_name(name, cell.name))
    ]
    return found[:1] if item.take == NEWEST else found


def names(folder: Path) -> tuple[str, ...]:
    """Its files, those in it first: what a person names as artifacts instead."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return tuple(path.as_posix() for path in sorted(found, key=lambda path: len(path.parts)))


# --- of all cells


def others(plan: Plan, cell: Cell, out: Path, lacks: Collection[str]) -> tuple[str, ...]:
    """What the short run wrote of other artifacts, or of what looks like one and no key names: so
    it came to its saves. A log that grows while it trains says nothing of that.
    """
    held = terms.terms_of_cell(plan, cell.name)
    declared = [item.path for item in held.artifacts]
    named = [*declared, *plan.collect, *plan.scratch, *([held.resume] if held.resume else [])]
    named += [metric.of for metric in plan.metrics if metric.source != LOG]
    suffixes = {PurePosixPath(path).suffix for path in lacks} - {""}
    found = []
    for name in names(out):
        is_model = kind_of(out, name) in _OF_MODELS or PurePosixPath(name).suffix in suffixes
        if strays.is_of(name, declared) or (is_model and not strays.is_of(name, named)):
            found.append(name)
    return tuple(found)


def in_no_cell(plan: Plan, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[str]]:
    """The outcomes, where those are failed that lack what no cell wrote although they wrote others,
    and what that is. What is resumed from is saved from time to time: a short run may end before.
    """
    wanted: dict[str, set[bool]] = {}
    for item in outcomes:
        held = terms.terms_of_cell(plan, item.cell)
        for path in {one.path for one in held.artifacts} - {held.resume} if item.is_good else ():
            wanted.setdefault(path, set()).add(path not in item.lacks)
    lost = {path for path, written in wanted.items() if written == {False}}
    if not any(item.others for item in outcomes):
        return list(outcomes), []
    return [_failed(one, lost) if lost & {*one.lacks} else one for one in outcomes], sorted(lost)


def _failed(item: Outcome, lost: set[str]) -> Outcome:
    lacks = some(sorted(lost & {*item.lacks}), MOST_NAMED)
    why = _("did not write {files}", files=lacks)
    if item.others:
        wrote = _("but wrote {files}", files=some(item.others, MOST_NAMED))
        why = _("{first}; {second}", first=why, second=wrote)
    return replace(item, word=FAILED, why=why, log=None)
