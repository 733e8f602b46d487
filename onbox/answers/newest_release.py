"""Which release is the newest: said once it is there whole, and before any line that needs it."""

from __future__ import annotations

import os

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import Command, DamagedError, InputError, TemporaryError
from boxcar.shared.files import codec, release
from boxcar.shared.files.release import Newest
from boxcar.shared.paths import DurablePaths
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox

LOCK_S = 5.0


def answer(question: run_asks.PointTo, run: RunOnBox) -> run_asks.Pointed:
    """Raises InputError for a release that is not there, TemporaryError."""
    tier = run.tier
    if not tier.release(question.digest).is_dir():
        raise InputError(
            _("{digest}: is not there", digest=tier.release(question.digest)), Command("push")
        )
    # Two laptops may push at once: neither takes the other's release out of the list.
    held = lock.hold(tier.newest.with_suffix(".lock"), LOCK_S)
    if held is None:
        raise TemporaryError(_("{newest}: somebody else is pushing; try again", newest=tier.newest))
    try:
        before = _pushed(tier)
        after = release.with_newest(before, question.digest)
        if after != before:
            document = codec.to_document(Newest(after, timestamp.utc_now()))
            atomic.write_whole(tier.newest, document)
    finally:
        os.close(held)
    return run_asks.Pointed()


def is_newest(tier: DurablePaths, digest: str) -> bool:
    return _pushed(tier)[-1:] == (digest,)


def newest_there(tier: DurablePaths) -> str | None:
    """The release that was pushed last of those whose folder is still there."""
    there = (one for one in reversed(_pushed(tier)) if tier.release(one).is_dir())
    return next(there, None)


def _pushed(tier: DurablePaths) -> tuple[str, ...]:
    """None where the list is damaged: it is made anew, and only older releases are forgotten."""
    try:
        return release.releases(tier.newest)
    except DamagedError:
        return ()
