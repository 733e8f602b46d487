"""What a queue's agent could not deliver stays with a small process, for a day at most.

It holds the lock of the cursor and not the queue's: whoever takes the queue's lock (an agent, a
late delivery, the end of the run) makes it end within a second. It ends by itself when all is
taken, and when the credentials or the journal are gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from boxcar.shared.disk import lock
from boxcar.shared.paths import DurablePaths
from onbox.machine import credentials
from onbox.webhooks import deliver

VERB = "linger"
DAY_S = 86_400.0
# A deliverer that is asked to end answers well within that.
YIELDS_WITHIN_S = 10.0
_LOOK_S = 0.5
# Set in all that a Slurm job starts.
_SLURM_JOB = "SLURM_JOB_ID"


def start(release: Path, queue: str) -> None:
    """Leave one behind, as this program was started itself; nothing where it was not by its door,
    nor in a Slurm job, whose node is somebody else's when the job is over.

    It holds nothing of ours: the agent's log is a lock, and its terminal goes away.
    """
    words = sys.orig_argv
    if "agent" not in words or _SLURM_JOB in os.environ:
        return
    subprocess.Popen(
        [*words[: words.index("agent")], VERB, "--release", str(release), "--queue", queue],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def linger(
    tier: DurablePaths, queue: str, secrets: Path, longest_s: float = DAY_S, *, sharing: int = 1
) -> int:
    """Deliver until nothing is left or somebody else wants to; how many events are left. `sharing`
    is the deliverer's.

    Raises DamagedError, InputError.
    """
    held = lock.hold(tier.delivered_lock(queue), _LOOK_S)  # somebody may be looking, for an instant
    if held is None:
        return 0  # one is enough
    try:
        known = credentials.read(secrets)
        deliverer = deliver.of(tier.journal(queue), tier.delivered(queue), known, sharing)
        return _until_the_end(deliverer, tier, queue, secrets, longest_s) if deliverer else 0
    finally:
        os.close(held)


def _until_the_end(
    deliverer: deliver.Deliverer, tier: DurablePaths, queue: str, secrets: Path, longest_s: float
) -> int:
    deliverer.start()
    until = time.monotonic() + longest_s
    seen, left = deliverer.reached(), deliverer.pending()
    try:
        while left and time.monotonic() < until and _is_alone(tier, queue, secrets):
            time.sleep(_LOOK_S)
            if (now := deliverer.reached()) != seen:
                seen, left = now, deliverer.pending()
    finally:
        deliverer.close(0)
    return left


def _is_alone(tier: DurablePaths, queue: str, secrets: Path) -> bool:
    is_wanted = secrets.exists() and tier.journal(queue).exists()
    return is_wanted and not lock.is_held(tier.lock(queue))
