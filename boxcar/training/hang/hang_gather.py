"""The ranks come together over their dumps: one prints the report, all learn the same verdict.

No collective and no store: the ranks are in trouble, and the store may have died with rank 0. They
meet in a folder: {out}/hang. The lowest rank that lives writes report.json, once; the others read
it. Ranks of a node that does not share the folder see only themselves, and the report says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from boxcar.shared.disk import atomic
from boxcar.training.hang import diagnosis, rank_dump
from boxcar.training.hang.diagnosis import Diagnosis
from boxcar.training.hang.rank_dump import Attempt, RankDump

FORMAT = "boxcar.hang/1"
_LOOK_EVERY_S = 0.05


def settle(folder: Path, attempt: Attempt, mine: RankDump, grace_s: float) -> Diagnosis | None:
    """What all ranks agree is the matter; `mine` is written already.

    Waits up to `grace_s` for the dumps of the others, and as long again for the one who reports.
    None: the ranks are slow, and the one who reported has taken the dumps away.
    """
    begun = time.monotonic()
    while (waited_s := time.monotonic() - begun) < 2 * grace_s:
        if found := read_report(folder, attempt):
            return found
        first = _first_alive(folder, attempt, mine)
        if first is None:
            return None
        if first == mine.rank and (waited_s > grace_s or _everybody(folder, attempt, mine)):
            break
        time.sleep(_LOOK_EVERY_S)
    return _publish(folder, attempt, mine)


def is_trouble(folder: Path, attempt: Attempt) -> bool:
    """Whether a rank of this attempt has raised or waits too long; cheap while the folder is not
    there."""
    if not folder.is_dir():
        return False
    return any(dump.state != "left" for dump in rank_dump.read_all(folder, attempt))


def read_report(folder: Path, attempt: Attempt) -> Diagnosis | None:
    """The report of this attempt, if it has been written."""
    try:
        fields = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if not attempt.has(*(fields[name] for name in ("group", "host", "launcher", "at"))):
            return None
        names = [field.name for field in dataclasses.fields(Diagnosis)]
        found = {name: fields[name] for name in names}
        return Diagnosis(**{**found, "ranks": tuple(found["ranks"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def begin(folder: Path, attempt: Attempt, rank: int) -> None:
    """Take away what this rank, and the report, said in an earlier attempt."""
    rank_dump.path_of(folder, rank).unlink(missing_ok=True)
    if read_report(folder, attempt) is None:
        for path in _reports(folder):
            path.unlink(missing_ok=True)
    _remove_if_empty(folder)


def end_well(folder: Path, attempt: Attempt, world: int) -> None:
    """The last rank that leaves takes the traces away, where all have left without trouble."""
    dumps = rank_dump.read_all(folder, attempt)
    if len(dumps) == world and all(dump.state == "left" and not dump.error for dump in dumps):
        _remove(folder, dumps)


def say(text: str) -> None:
    """On stderr, whatever state it is in."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _everybody(folder: Path, attempt: Attempt, mine: RankDump) -> bool:
    return len(rank_dump.read_all(folder, attempt)) == mine.world


def _first_alive(folder: Path, attempt: Attempt, mine: RankDump) -> int | None:
    """The lowest rank that can report; None where our own dump was taken away."""
    dumps = rank_dump.read_all(folder, attempt)
    if all(dump.rank != mine.rank for dump in dumps):
        return None
    return min(dump.rank for dump in dumps if dump.state != "left" and _is_alive(dump, attempt))


def _is_alive(dump: RankDump, attempt: Attempt) -> bool:
    if dump.host != attempt.host:
        return True
    try:
        os.kill(dump.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _publish(folder: Path, attempt: Attempt, mine: RankDump) -> Diagnosis | None:
    dumps = rank_dump.read_all(folder, attempt) or [mine]
    found = diagnosis.diagnose(dumps, mine.world)
    report = diagnosis.report(found, dumps, folder)
    if found.kind == diagnosis.SLOW:
        say(report)
        # What was left stays said. Ours last: its absence is the others' sign to go on.
        present = [dump for dump in dumps if dump.state != "left"]
        _remove(folder, sorted(present, key=lambda dump: dump.rank == mine.rank))
        return None
    fields = {"format": FORMAT, "advice": found.advice, **attempt.now()}
    content = json.dumps({**fields, **dataclasses.asdict(found)}, indent=1) + "\n"
    if not atomic.create_once(folder / "report.json", content.encode()):
        return read_report(folder, attempt) or found
    atomic.write_whole(folder / "report.txt", (report + "\n").encode(errors="replace"))
    say(report)
    return found


def _remove(folder: Path, dumps: Sequence[RankDump]) -> None:
    """Take these away, and not what a rank has written since."""
    for dump in dumps:
        path = rank_dump.path_of(folder, dump.rank)
        if rank_dump.read(path) == dump:
            path.unlink(missing_ok=True)
    _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _reports(folder: Path) -> tuple[Path, Path]:
    return folder / "report.json", folder / "report.txt"
