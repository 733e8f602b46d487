"""The results folder of a run on the laptop: one verb at a time, and nothing in it is ever deleted.

pull, verify and down change what lies there, so only one of them works at a time. What gives way to
something newer is moved to `replaced/`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common import home
from boxcar.laptop.common.home import Home
from boxcar.laptop.results.judge import CellFacts, missing
from boxcar.laptop.run import run_journals
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Missing
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import Command, DamagedError, TemporaryError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import CellReceipt, CellVerdict, Finding
from boxcar.shared.paths import MANIFEST, RECEIPT, ResultPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# What the laptop has of a run's small files on the tier, where that is not what the tier has.
#
# A copy proves nothing: the box that holds the tier decides which one it believes.


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
        if not run_journals.begins_anew(run, path.stem)
    }
    for folder in here.cells.glob("*"):
        for file in (MANIFEST, RECEIPT):
            found[f"cells/{folder.name}/{file}"] = [folder / file]
    kept = {name: [*files, *run.kept_copies(name)] for name, files in found.items()}
    return _other_than_on_tier(run, kept)


def copies_of_damaged(run: OpenRun, names: Iterable[str]) -> Copies:
    """Copies of these, which are damaged; of a release's files those from which it was pushed."""
    found = {name: [*run.kept_copies(name), *_of_release(run, name)] for name in names}
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


# Which results lie here proven, whatever a tier says by now. Pure.
#
# The proof is the one of `verify`: each file is as the manifest says, and each artifact was loaded
# and nothing is wrong with it. Who loaded it may be this machine, or the box that made it: its
# receipt lies beside the manifest and is bound to it. What this machine found counts above that.


@dataclass(frozen=True)
class Proof:
    """`at`: when the artifacts were loaded; `unpickled`: files that a person had allowed to run
    code then. `lacks` is empty where the result is proven.
    """

    at: str
    unpickled: tuple[str, ...]
    lacks: tuple[Missing, ...]

    @property
    def is_only_unseen(self) -> bool:
        """Whether nothing speaks against the result, and nobody has looked into it."""
        return bool(self.lacks) and all(row.command == Command("verify") for row in self.lacks)


def proof_of_cell(
    facts: CellFacts, seen: CellVerdict | None, seen_at: str, artifacts: Sequence[Artifact]
) -> Proof:
    """`seen` is what the last `verify` said of the cell, at `seen_at`; `artifacts` the plan's."""
    at, unpickled, findings = _looked(facts, seen, seen_at)
    lacks = missing(facts, findings, artifacts=artifacts, is_tier_there=False)
    return Proof(at, unpickled, lacks)


def _looked(
    facts: CellFacts, seen: CellVerdict | None, seen_at: str
) -> tuple[str, tuple[str, ...], Sequence[Finding]]:
    """When these very bytes were loaded, and what was found in them."""
    if seen and seen.findings and seen.manifest_sha256 == facts.manifest_sha256:
        return seen_at, tuple(seen.unpickled), seen.findings
    if (by_box := receipt_of_its_box(facts)) is not None:
        return by_box.checked_at, (), by_box.findings
    return seen_at, (), ()


def receipt_of_its_box(facts: CellFacts) -> CellReceipt | None:
    """The one that lies beside the manifest; None where that is of another result."""
    pulled = facts.pulled
    if pulled is None or pulled.receipt is None:
        return None
    made, found = pulled.manifest, pulled.receipt
    is_bound = found.manifest_sha256 == pulled.sha256
    is_of_it = (found.run, found.cell, found.attempt) == (made.run, made.cell, made.attempt)
    return found if is_bound and is_of_it else None


WAIT_S = 20.0
SECOND = "second.json"


@contextlib.contextmanager
def hold(run: OpenRun) -> Iterator[int]:
    """Be the only verb that changes the results; the descriptor that holds the lock.

    Creates the folder, and puts aside what belongs to a run of this name that was torn down before
    this one was launched. Raises TemporaryError where another keeps the lock, and InputError where
    the folder cannot be written to.
    """
    with home.results_to(run.results.root):
        atomic.make_folder(run.results.root)
        fd = _take(run.results.root / ".lock")
    try:
        _begin_again(run)
        yield fd
    finally:
        os.close(fd)


def set_aside(results: ResultPaths, path: Path) -> Path:
    """Move a file or folder out of the way, durably; where it lies now."""
    folder = results.root / "replaced"
    atomic.make_folder(folder)
    # Without colons, which some file systems refuse.
    aside = folder / f"{path.name}-{timestamp.utc_now().replace(':', '')}"
    path.rename(aside)
    atomic.sync_folder(folder)
    atomic.sync_folder(path.parent)
    return aside


def is_torn_down(results: ResultPaths) -> bool:
    """Whether a teardown came to its end. One that cannot be read did not: `down` says why."""
    try:
        teardown = receipt.read_teardown(results.teardown)
    except (OSError, DamagedError):
        return False
    return teardown is not None and teardown.finished_at is not None


def is_over(run: OpenRun) -> bool:
    """Whether it was torn down; where the tier is there again, it was launched anew since."""
    return not run.tier.root.exists() and is_torn_down(run.results)


@dataclass(frozen=True)
class SecondHomeRecord:
    """Results that came from the second home: of each cell its manifest's digest. No tier has that
    manifest, so what is here is compared with what is written down here.
    """

    FORMAT: ClassVar[str] = "second"
    VERSION: ClassVar[int] = 1

    cells: dict[str, str]


def from_second_home(results: ResultPaths) -> dict[str, str]:
    """By cell. Raises DamagedError, OSError."""
    path = results.root / SECOND
    if not path.exists():
        return {}
    return codec.from_document(SecondHomeRecord, path.read_bytes(), str(path)).cells


def keep_from_second_home(results: ResultPaths, cell: str, sha256: str) -> None:
    record = SecondHomeRecord(from_second_home(results) | {cell: sha256})
    atomic.write_whole(results.root / SECOND, codec.to_document(record))


def _take(path: Path) -> int:
    until = time.monotonic() + WAIT_S
    while (fd := lock.try_hold(path)) is None:
        if time.monotonic() > until:
            raise TemporaryError(
                _(
                    "{path}: another pull, verify or down of this run is in progress, or an rsync "
                    "that a killed pull left behind (it ends by itself). Try again when it has "
                    "ended",
                    path=path,
                )
            )
        time.sleep(0.1)
    return fd


def _begin_again(run: OpenRun) -> None:
    """A run that was torn down to the end and stands on the tier was launched anew since.

    What was abandoned or approved in its first life says nothing about the second.
    """
    results = run.results
    teardown = receipt.read_teardown(results.teardown)
    if teardown is None or teardown.finished_at is None or not run.tier.root.exists():
        return
    # The teardown goes last: it is what brings us here again after a crash in between.
    for path in (results.receipt, results.teardown):
        if path.exists():
            set_aside(results, path)
