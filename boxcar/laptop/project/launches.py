"""`results/RUN/launches.jsonl`: what was launched when, a line of JSON each, only ever appended.

It says whether the smoke passes were asked for, which nothing else remembers, and where the run is:
a job whose candidates have changed since still means the boxes that it was launched on.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError
from boxcar.shared.paths import ResultPaths
from boxcar.shared.sentence import _

LAUNCHES = "launches.jsonl"


def append_launch(
    results: ResultPaths,
    profile: str,
    digest: str,
    queues: Sequence[str],
    *,
    is_smoked: bool,
    credentials: Sequence[str] = (),
    not_tried: int = 0,
    skipped: Mapping[str, str] = MappingProxyType({}),
    place: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add a launch of these queues with this release; `credentials` are names, never values.

    `not_tried`: how many cells no smoke has tried; `skipped`: those that the job leaves out of it,
    with the reasons. `place`: what else of the profile says where the run is.
    """
    record = {
        "at": timestamp.utc_now(),
        "profile": profile,
        "release": digest,
        "queues": list(queues),
        "is_smoked": is_smoked,
        "credentials": list(credentials),
        "not_tried": not_tried,
        "skipped": dict(skipped),
        "place": dict(place),
    }
    atomic.make_folder(results.root)
    path = results.root / LAUNCHES
    # A line that was torn by a crash is left as it is, and hides no other.
    before = path.read_bytes() if path.exists() else b""
    torn = b"\n" if before and not before.endswith(b"\n") else b""
    atomic.append(path, torn + json.dumps(record).encode() + b"\n")


def credentials_of(results: ResultPaths) -> set[str]:
    """The names of all that was ever handed to a box of the run, as far as it was recorded."""
    return {str(name) for record in _records(results) for name in record.get("credentials", ())}


def releases_of(results: ResultPaths) -> set[str]:
    """The digests of all that was launched from here, as far as it was recorded."""
    return {str(record["release"]) for record in _records(results) if "release" in record}


def newest_place_of(results: ResultPaths) -> dict[str, str]:
    """Where the last launch was, by the profile's keys, as far as it was recorded."""
    found = [record.get("place") for record in _records(results)]
    return found[-1] if found and isinstance(found[-1], dict) else {}


def newest_release_of(results: ResultPaths) -> str | None:
    """The digest of what was launched last, as far as it was recorded."""
    found = [str(record["release"]) for record in _records(results) if "release" in record]
    return found[-1] if found else None


def _records(results: ResultPaths) -> Iterator[dict[str, Any]]:
    """Those that can be read."""
    for line in _lines(results):
        with contextlib.suppress(ValueError):
            if isinstance(record := json.loads(line), dict):
                yield record


def skipped_of(results: ResultPaths) -> dict[str, str]:
    """The cells that launches left out of their smoke, with the last reason, as far as is known."""
    found: dict[str, str] = {}
    for line in _lines(results):
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            found.update(json.loads(line).get("skipped", {}))
    return found


def _lines(results: ResultPaths) -> list[bytes]:
    try:
        lines = (results.root / LAUNCHES).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [line for line in lines[:-1] if line]  # the last one may be torn


def profiles_of(results: ResultPaths) -> list[str]:
    """The profile of each launch, the last one last.

    Raises DamagedError where the last line tells none; one before it that was torn is left out.
    """
    found: list[str] = []
    *before, last = _lines(results) or [b""]
    for line in before:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found.append(str(json.loads(line)["profile"]))
    try:
        return [*found, str(json.loads(last)["profile"])] if last else found
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(
            _(
                "{path}: its last line is not a launch record: {error}. Remove that line, and "
                "launch with --profile",
                path=results.root / LAUNCHES,
                error=error,
            )
        ) from error
