"""What the laptop has of a run's small files on the tier, where that is not what the tier has.

A copy proves nothing: the box that holds the tier decides which one it believes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.run.journals import whole_journal
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared import paths
from boxcar.shared.paths import MANIFEST, RECEIPT

Copies = dict[str, tuple[bytes, ...]]
# One question is one line: what is larger is sent by a push.
MOST_BYTES = 8 * 1024 * 1024


def copies_of_reports(run: OpenRun) -> Copies:
    """Copies of journals, manifests and receipts: those that were pulled, and those that the boxes
    reported before.
    """
    here = run.results
    found: dict[str, list[Path]] = {
        f"journal/{path.name}": [path]
        for path in here.journals.glob("*.jsonl")
        if not whole_journal.begins_anew(run, path.stem)
    }
    for folder in here.cells.glob("*"):
        for file in (MANIFEST, RECEIPT):
            found[f"cells/{folder.name}/{file}"] = [folder / file]
    kept = {name: [*files, *run.boxes.kept(name)] for name, files in found.items()}
    return _other_than_on_tier(run, kept)


def copies_of_damaged(run: OpenRun, names: Iterable[str]) -> Copies:
    """Copies of these, which are damaged; of a release's files those from which it was pushed."""
    found = {name: [*run.boxes.kept(name), *_of_release(run, name)] for name in names}
    return _other_than_on_tier(run, found)


def copies_of_box(run: OpenRun, copies: Copies, box: str) -> Copies:
    """Those of the queues of a box that has a tier of its own."""
    queues = {name for name, at in run.plan.queues.items() if at == box}
    cells = {cell.name for cell in run.plan.cells if cell.queue in queues}
    mine = {"journal": {f"{queue}.jsonl" for queue in queues}, "cells": cells}
    parts = {name: name.split("/") for name in copies}
    return {
        name: data
        for name, data in copies.items()
        if parts[name][0] not in mine or parts[name][1] in mine[parts[name][0]]
    }


def _of_release(run: OpenRun, name: str) -> Iterator[Path]:
    folder, _, rest = name.partition("/")
    release, _, file = rest.partition("/")
    if folder == "releases" and file:
        yield paths.inside(Home(run.project.root).release(release), file)


def _other_than_on_tier(run: OpenRun, found: dict[str, list[Path]]) -> Copies:
    copies = {}
    for name, files in found.items():
        there = _read(paths.inside(run.tier.root, name))
        data = dict.fromkeys(copy for file in files if (copy := _read(file)) not in (None, there))
        if data:
            copies[name] = tuple(copy for copy in data if copy is not None)
    return copies


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size <= MOST_BYTES else None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
