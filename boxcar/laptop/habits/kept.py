"""What a finished cell of a script leaves: what the script saves, else what it imports does."""

from __future__ import annotations

import ast
from pathlib import Path

from boxcar.laptop.habits import command, imported, saves
from boxcar.laptop.habits.flags import Flag
from boxcar.laptop.habits.frameworks import Framework, Kept
from boxcar.laptop.habits.saves import ANY, Saved
from boxcar.laptop.habits.script import Script
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.files.plan import ALL, NEWEST, SAFE, TRUSTED
from boxcar.shared.record import dataclass

_PICKLES = (".pkl", ".pickle", ".joblib")


@dataclass(frozen=True)
class Found:
    """`saved` is what the project's own code saves; `artifacts` are () where it writes nothing."""

    saved: tuple[Saved, ...]
    artifacts: tuple[Kept, ...]
    why: str


def of(root: Path, script: Script, known: Framework, place: Flag | None) -> Found:
    """`place` is the flag that says where to write. Without one nobody knows how deep below {out}
    an imported file saves.
    """
    saved = script.saves
    if known.artifacts:
        return Found(saved, known.artifacts, known.artifacts_why)
    lines = ", ".join(str(each.line) for each in saved)
    why: str = Sentence("init.saves", script=script.path, lines=lines)
    if place and (name := command.file_of(place)):
        return Found(saved, (Kept(name),), why if saved else known.artifacts_why)
    if saved:
        return Found(saved, tuple(map(_kept, saved)), why)
    trees = _trees(root, script)
    more = {each.name: each for tree in trees for each in saves.read(tree) if not each.is_in_cwd}
    if place and more:
        found = tuple(more.values())
        why = Sentence("init.imports_save", script=script.path)
        return Found(found, tuple(map(_kept, found)), why)
    if events := [name for tree in trees for name in saves.event_folders(tree)]:
        return Found((), (Kept(events[0], NEWEST),), Sentence("init.events"))
    if trees and not (known.name or any(map(saves.may_write, trees))):
        return Found((), (), Sentence("init.writes_nothing"))
    return Found((), (Kept(ANY),), known.artifacts_why)


def _trees(root: Path, script: Script) -> list[ast.Module]:
    """Its own source and all that it imports of the project; [] where that cannot be read."""
    own = imported.parsed(root / script.path)
    return [own, *imported.all_of(root, root / script.path, own)] if own else []


def _kept(saved: Saved) -> Kept:
    # Estimators and the like are objects of a library: only code that is trusted loads them.
    load = TRUSTED if saved.name.lower().endswith(_PICKLES) else SAFE
    if ANY not in saved.name:
        return Kept(saved.name.rstrip("/"), load=load)
    return Kept(saved.name, NEWEST if saved.is_checkpoint else ALL, load)
