"""Which runs were launched from this machine by this person, whatever folder they are in.

One line of JSON for each launch, below $XDG_STATE_HOME. No run is lost with it: `runs` forgets, and
where a run's results were removed as well nobody knows by itself where that run is.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class KnownRun:
    """`job` is the path of its job file; `at` when it was launched last."""

    run: str
    job: Path
    profile: str
    at: str


def known_runs_file(environ: Mapping[str, str]) -> Path:
    """Where they stand. A relative XDG_STATE_HOME counts for nothing, by its own specification."""
    given = Path(environ.get("XDG_STATE_HOME", ""))
    home = given if given.is_absolute() else Path.home() / ".local" / "state"
    return home / "boxcar" / "runs.jsonl"


def remember_run(run: str, job: Path, profile: str) -> None:
    """Never raises: a home that cannot be written keeps nobody from launching."""
    path = known_runs_file(os.environ)
    record = {"run": run, "job": str(job), "profile": profile, "at": timestamp.utc_now()}
    with contextlib.suppress(OSError):
        atomic.make_folder(path.parent)
        # Behind a line that a crash has torn.
        atomic.append(path, b"\n" * _is_torn(path) + json.dumps(record).encode() + b"\n")


def known_runs() -> list[KnownRun]:
    """The newest launch of each, those launched last first; a line that is none is left out."""
    found: dict[tuple[str, Path], KnownRun] = {}
    for one in _launches():
        found.pop((one.run, one.job), None)  # launched again, it comes last
        found[one.run, one.job] = one
    return list(found.values())[::-1]


def profiles_of(run: str, folder: Path) -> list[str]:
    """The profile of each launch of this run from this folder, the last one last."""
    return [one.profile for one in _launches() if (one.run, one.job.parent) == (run, folder)]


def _launches() -> Iterator[KnownRun]:
    try:
        lines = known_runs_file(os.environ).read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            record = json.loads(line)
            yield KnownRun(
                str(record["run"]), Path(record["job"]), str(record["profile"]), str(record["at"])
            )


def _is_torn(path: Path) -> bool:
    return path.exists() and not path.read_bytes().endswith(b"\n")
