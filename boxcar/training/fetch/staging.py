"""All files of a spec: look first, say everything that is missing, then fetch side by side."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic, checked_copy, lock
from boxcar.shared.errors import InputError
from boxcar.shared.safe_url import shown
from boxcar.training.fetch import data_spec, lookup
from boxcar.training.fetch.data_spec import Spec
from boxcar.training.fetch.download import Download, ProgressLine, Told, write_progress_line
from boxcar.training.fetch.lookup import Outcome, look_up
from boxcar.training.reporting.say import size_text

Files = dict[tuple[str, str], Path]
"""Where each file lies, by task and split. An optional one that is nowhere is not in it."""

WORKERS = 8
LOCK = ".fetch.lock"


def fetch(
    spec: Spec | Mapping[str, Any] | str | Path,
    *,
    workers: int = WORKERS,
    told: Told | None = None,
) -> Files:
    """Bring every file of the spec into its folder and say where each lies.

    `spec` is what data.json holds, or its path. For every rank of a training to call: of the
    processes that share the folder one fetches, the others wait for it; where everything lies here
    already no source is asked. Raises MissingError (before anything is fetched), InputError,
    NoRoomError, DamagedError, TemporaryError (a later call goes on where this one stopped).
    """
    spec = read(spec)
    if len(files := present(spec)) == len(spec.files):
        return files
    atomic.make_folder(spec.to)
    held = _hold(spec.to / LOCK)
    try:
        lookup.renew_receipts(spec)
        if len(files := present(spec)) < len(spec.files):
            _fetch_missing(spec, workers, told)
            files = present(spec)
    finally:
        os.close(held)
    return files


def check(spec: Spec | Mapping[str, Any] | str | Path, *, workers: int = WORKERS) -> list[Outcome]:
    """Where each file is, written nowhere. Raises as `fetch` does for what is missing."""
    spec = read(spec)
    outcomes = look_up(spec, workers, by_content=True)
    _refuse_foreign(spec, outcomes)
    return outcomes


def present(spec: Spec) -> Files:
    """What lies here already as the spec wants it, by the receipts; asks no source."""
    found = ((file, lookup.find_here(spec.to, file, by_content=False)) for file in spec.files)
    return {(file.task, file.split): spec.to / at.name for file, at in found if at}


def read(spec: Spec | Mapping[str, Any] | str | Path) -> Spec:
    """Raises InputError with everything that is wrong."""
    if isinstance(spec, Spec):
        return spec
    if isinstance(spec, Mapping):
        return data_spec.parse(spec, "the data spec")
    return data_spec.parse(read_json(Path(spec)), str(spec))


def read_json(path: Path) -> Any:
    """Raises InputError."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected JSON: {error}") from error


def _fetch_missing(spec: Spec, workers: int, told: Told | None) -> None:
    outcomes = look_up(spec, workers)
    for outcome in outcomes:
        _warn(outcome)
    _refuse_foreign(spec, outcomes)
    found = [(o.source, o.candidate) for o in outcomes if o.source and o.candidate]
    if not found:
        return
    progress, stop = (
        ProgressLine(sum(one.size_bytes or 0 for one, _ in found), len(found), told),
        threading.Event(),
    )
    downloads = [Download(one, spec.to / at.name, at.sha256, progress, stop) for one, at in found]
    count = f"{len(found)} file{'s' * (len(found) > 1)}"
    write_progress_line(f"fetch: {count}, {size_text(progress.total_bytes)}, into {spec.to}")
    checked_copy.check_room(spec.to, [one.part.missing_bytes for one in downloads])
    with progress:
        _run(downloads, stop, workers)
    write_progress_line(f"fetch: {count} fetched and checked")


def _warn(outcome: Outcome) -> None:
    if not outcome.is_found:
        write_progress_line(f"fetch: optional, and not there: {outcome}")
    elif outcome.source and not outcome.is_certain:
        write_progress_line(f"fetch: taken from {shown(outcome.source.url)}, because: {outcome}")


def _refuse_foreign(spec: Spec, outcomes: Iterable[Outcome]) -> None:
    lookup.refuse_foreign(spec.to / o.candidate.name for o in outcomes if o.candidate)


def _run(downloads: list[Download], stop: threading.Event, workers: int) -> None:
    """Pieces of all files side by side. The first error ends it; what has come is kept."""
    with ThreadPoolExecutor(workers, thread_name_prefix="fetch") as pool:
        try:
            jobs = [pool.submit(job) for one in downloads for job in one.jobs()]
            ended, _ = wait(jobs, return_when=FIRST_EXCEPTION)
            for job in ended:
                job.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            for one in downloads:
                one.part.save()
            raise


def _hold(path: Path) -> int:
    held = lock.try_hold(path)
    if held is None:
        write_progress_line(f"fetch: another process fetches into {path.parent}; waiting for it")
        held = lock.hold(path, math.inf)
    assert held is not None
    return held
