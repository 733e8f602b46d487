"""All rows, in the order of what outranks what: a dead GPU explains everything below it."""

from __future__ import annotations

from boxcar.shared.triage.signature import Signature
from boxcar.shared.triage.signatures import (
    code,
    data_and_state,
    devices,
    disks,
    installed,
    memory,
    network,
    platform,
    ranks,
)

_TOPICS = (devices, platform, disks, memory, data_and_state, ranks, network, installed, code)
SIGNATURES: tuple[Signature, ...] = tuple(row for topic in _TOPICS for row in topic.SIGNATURES)
BY_ID = {row.id: row for row in SIGNATURES}
