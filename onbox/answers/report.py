"""What a box says of a run: what lives on it, and the run's small control files on the tier.

Asked every few seconds, so each file is read once, and of one that only grew the new end is sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timezone

from boxcar.shared import names, timestamp
from boxcar.shared.cell.cell_name import CELL_NAME
from boxcar.shared.disk import lock
from boxcar.shared.disk.regular_file import read_plain
from boxcar.shared.errors import reason_of
from boxcar.shared.files import progress, release
from boxcar.shared.paths import MANIFEST, RECEIPT, RESUME, DurablePaths, ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import Prefix, RunOnBox
from boxcar.shared.wire.run_asks import FilePart
from onbox.machine import gauges, process

MOST_BYTES = 8 * 1024 * 1024
# Folder of the tier -> the ending of its control files, each named after a queue.
_OF_QUEUES = {
    "control": ".json",
    # Before the journal: it says how far that was.
    "heartbeat": ".json",
    "journal": ".jsonl",
    "delivered": ".json",
}
# Folder -> the same, where each file is named after a cell.
_OF_CELLS = {"claims": ".json", "accepted": ".json"}
# Folder -> the rule for the folders in it, and the control files in each of these.
_IN_FOLDERS = {
    "cells": (CELL_NAME, (MANIFEST, RECEIPT, RESUME)),
    "releases": (names.DIGEST, (release.FILE, release.PLAN)),
}


def answer(question: run_asks.Report, run: RunOnBox) -> run_asks.Reported:
    tier, scratch, have, queues = run.tier, run.scratch, question.have, question.queues
    own = None if question.everything else list(_names(queues))
    seen = mark(run, queues)  # before all of it: what changes meanwhile is news
    # Asked before and after: an agent that ends meanwhile has not written its last word in what is
    # read in between, and would look dead.
    before = _agents(tier, queues) if _is_there(tier) else {}
    wanted = list(_all(tier) if own is None else _existing(tier, own)) if _is_there(tier) else []
    found = _lacking(tier, wanted, have)
    attempts = _attempts(scratch)
    # Looked at after all of it: a tier that was unmounted meanwhile has lost nothing.
    is_there = _is_there(tier)
    agents: dict[str, bool | None] = dict.fromkeys(queues)
    if is_there:
        agents = {**_either(before, _agents(tier, queues))}
    return run_asks.Reported(
        at=timestamp.utc_now(),
        boot_id=process.boot_id(),
        is_tier_there=is_there,
        agents=agents,
        attempts=tuple(attempts),
        progress_at={cell: at for cell in attempts if (at := _progress_at(scratch, cell))},
        files=found.files if is_there else (),
        gone=tuple(gone(wanted, have, own)) if is_there else (),
        is_more=found.is_more and is_there,
        gauges=gauges.read(scratch.data_dir, tier.root),
        unread=found.unread or None if is_there else None,
        written=tuple(cell for cell in attempts if _is_written(scratch, cell)),
        mark=seen,
    )


def mark(run: RunOnBox, queues: Iterable[str]) -> str:
    """Another one as soon as somebody who waits would want to look again. Nothing is read for it,
    so that it can be asked for twice a second.
    """
    tier, scratch = run.tier, run.scratch
    if not _is_there(tier):
        return hashlib.sha256(b"").hexdigest()
    files = [name for name in _names(queues) if not name.startswith("heartbeat/")]
    attempts = _attempts(scratch)
    seen = (
        [_stamp(tier, name) for name in files],
        [lock.is_held(tier.lock(name)) for name in queues],
        attempts,
        [_is_written(scratch, cell) for cell in attempts],
    )
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def _stamp(tier: DurablePaths, name: str) -> tuple[int, int] | None:
    try:
        found = (tier.root / name).stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


@dataclass(frozen=True)
class Lacking:
    files: tuple[FilePart, ...]
    is_more: bool
    unread: dict[str, str]


def part(path: str, data: bytes, has: Prefix | None) -> FilePart | None:
    """What is to be sent of a file that holds `data`; None where the laptop has all of it."""
    size_bytes, sha256 = has or (0, "")
    view = memoryview(data)
    whole = hashlib.sha256(view[:size_bytes])
    is_begun = len(data) >= size_bytes and whole.hexdigest() == sha256
    whole.update(view[size_bytes:])
    if is_begun and len(data) == size_bytes:
        return None
    offset = size_bytes if is_begun else 0
    return FilePart(path, offset, data[offset:], len(data), whole.hexdigest())


def gone(wanted: Iterable[str], have: Iterable[str], own: Iterable[str] | None) -> list[str]:
    """What the laptop has and the tier has not; of what was not asked for nothing is known."""
    lost = set(have) - set(wanted)
    return sorted(lost if own is None else lost & set(own))


def _lacking(tier: DurablePaths, wanted: list[str], have: dict[str, Prefix]) -> Lacking:
    """What to send now: MOST_BYTES at most, and never nothing where something is lacking.

    Small files come whole. A large one comes in parts, also where others change meanwhile and are
    sent before it each time: of a plan of 30,000 cells nothing would ever come else.
    """
    files: list[FilePart] = []
    unread: dict[str, str] = {}
    left = MOST_BYTES
    for name in wanted:
        try:
            data = read_plain(tier.root, name)
        except OSError as error:  # what the laptop has of it stays
            unread[name] = reason_of(error)
            continue
        found = None if data is None else part(name, data, have.get(name))
        if found is None:
            continue
        size_bytes = len(found.data)
        if size_bytes <= left or size_bytes > MOST_BYTES // 2 or not files:
            files.append(_cut(found, left))
        if size_bytes > left:
            return Lacking(tuple(files), is_more=True, unread=unread)
        left -= size_bytes
    return Lacking(tuple(files), is_more=False, unread=unread)


def _cut(found: FilePart, most_bytes: int) -> FilePart:
    return replace(found, data=found.data[:most_bytes])


# --- which files there are


def _names(queues: Iterable[str]) -> Iterator[str]:
    for name in queues:
        yield f"queues/{names.file_of(name)}.txt"
        yield from (f"{folder}/{name}{ending}" for folder, ending in _OF_QUEUES.items())


def _existing(tier: DurablePaths, wanted: list[str]) -> Iterator[str]:
    return (name for name in wanted if (tier.root / name).exists())


def _all(tier: DurablePaths) -> Iterator[str]:
    yield from _in_folder(tier, "queues", names.PLACE, ".txt")
    for folder, ending in _OF_QUEUES.items():
        yield from _in_folder(tier, folder, names.QUEUE, ending)
    for folder, ending in _OF_CELLS.items():
        yield from _in_folder(tier, folder, CELL_NAME, ending)
    for folder, (rule, files) in _IN_FOLDERS.items():
        yield from _in_folders(tier, folder, rule, files)


def _in_folder(
    tier: DurablePaths, folder: str, rule: re.Pattern[str], ending: str
) -> Iterator[str]:
    for name in _listed(tier, folder):
        stem = name.removesuffix(ending)
        if stem != name and rule.fullmatch(stem):
            yield f"{folder}/{name}"


def _in_folders(
    tier: DurablePaths, folder: str, rule: re.Pattern[str], files: tuple[str, ...]
) -> Iterator[str]:
    for name in _listed(tier, folder):
        if rule.fullmatch(name):
            there = set(_listed(tier, f"{folder}/{name}"))
            # One look at the folder tells of all files in it; the checkpoint's is a folder deeper.
            if RESUME.partition("/")[0] in there and (tier.root / folder / name / RESUME).is_file():
                there.add(RESUME)
            yield from (f"{folder}/{name}/{file}" for file in files if file in there)


def _listed(tier: DurablePaths, folder: str) -> list[str]:
    try:
        return sorted(path.name for path in (tier.root / folder).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_there(tier: DurablePaths) -> bool:
    """Whether the tier can be seen. With its server away it is not there, and lost nothing."""
    try:
        return tier.root.is_dir()
    except OSError:
        return False


# --- what lives here


def _agents(tier: DurablePaths, queues: Iterable[str]) -> dict[str, bool]:
    others = (name.removesuffix(".lock") for name in _listed(tier, "locks"))
    named = {*queues, *(name for name in others if names.QUEUE.fullmatch(name))}
    return {name: lock.is_held(tier.lock(name)) for name in sorted(named)}


def _either(before: dict[str, bool], after: dict[str, bool]) -> dict[str, bool]:
    return {name: is_held or before.get(name, False) for name, is_held in after.items()}


def _attempts(scratch: ScratchPaths) -> list[str]:
    try:
        cells = sorted(path.name for path in scratch.cells.iterdir())
    except FileNotFoundError:
        return []
    named = [cell for cell in cells if CELL_NAME.fullmatch(cell)]
    return [cell for cell in named if _may_run(scratch, cell)]


def _may_run(scratch: ScratchPaths, cell: str) -> bool:
    """Where its script has put something that cannot be asked in the log's place, it may."""
    try:
        return lock.is_held(scratch.log(cell))
    except OSError:
        return True


def _is_written(scratch: ScratchPaths, cell: str) -> bool:
    try:
        return scratch.log(cell).stat().st_size > 0
    except OSError:
        return False


def _progress_at(scratch: ScratchPaths, cell: str) -> str | None:
    with contextlib.suppress(OSError):
        changed_s = (scratch.out(cell) / progress.FILE).stat().st_mtime
        return timestamp.utc(datetime.fromtimestamp(changed_s, timezone.utc))
    return None
