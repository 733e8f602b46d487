"""Of a cell that its journal calls verified: whether what was published is on the durable tier.

A journal says what was so once. The manifest that it names has to be there now, byte by byte.
"""

from __future__ import annotations

from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import QueueView
from boxcar.shared import timestamp
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, message_of
from boxcar.shared.files import manifest
from boxcar.shared.state import Verified

_GONE = "its manifest is gone from the durable tier"


def lost_result(
    run: OpenRun,
    cell: str,
    said: Verified,
    queue: QueueView,
    now: str,
) -> str | None:
    """Why the result cannot be counted as safe, as a clause; None where nothing speaks against it.

    Nothing is said where the tier is gone: a teardown removes it, and one that is out of sight is
    told as that.
    """
    path = run.tier.manifest(cell)
    try:
        if manifest.sha256(path) == said.manifest_sha256:
            return None
        return _unlike(path.read_bytes(), str(path), said)
    except FileNotFoundError:
        if not run.tier.root.exists():
            return None
        return None if _may_be_unseen(run, said, queue, now) else _GONE
    except OSError as error:
        return f"its manifest cannot be read: {message_of(error).text}"


def _may_be_unseen(run: OpenRun, said: Verified, queue: QueueView, now: str) -> bool:
    age_s = timestamp.seconds_between(said.at, now, queue.clock_ahead_s)
    return age_s < run.boxes.listing_age_s(queue.box)


def _unlike(data: bytes, where: str, said: Verified) -> str | None:
    if digest.of_bytes(data) == said.manifest_sha256:
        return None
    try:
        found = manifest.parse_manifest(data, where)
    except DamagedError:
        return "its manifest on the durable tier is damaged"
    # A later attempt may be published before its agent, which died, could say so.
    if found.attempt > said.attempt:
        return None
    return "the manifest on the durable tier is not the one that the journal names"
