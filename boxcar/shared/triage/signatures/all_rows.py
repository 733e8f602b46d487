"""All rows, in the order of what outranks what: a dead GPU explains everything below it."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.signature import Signature
from boxcar.shared.triage.signatures import (
    clusters,
    code,
    data_and_state,
    devices,
    disks,
    installed,
    memory,
    network,
    platform,
    pythons_own,
    ranks,
)

TOPICS: tuple[tuple[str, tuple[Signature, ...]], ...] = (
    (mark("GPUs and drivers"), devices.SIGNATURES),
    (mark("Platforms and signals"), platform.SIGNATURES),
    (mark("Schedulers and containers"), clusters.SIGNATURES),
    (mark("Disks"), disks.SIGNATURES),
    (mark("Memory"), memory.SIGNATURES),
    (mark("Checkpoints, numbers and data"), data_and_state.SIGNATURES),
    (mark("Several ranks"), ranks.SIGNATURES),
    (mark("Networks, hubs and trackers"), network.SIGNATURES),
    (mark("Installed software"), installed.SIGNATURES),
    (mark("Config and code"), code.SIGNATURES),
    (mark("The script's own errors"), pythons_own.SIGNATURES),
)
SIGNATURES = tuple(row for _, rows in TOPICS for row in rows)
BY_ID = {row.id: row for row in SIGNATURES}
