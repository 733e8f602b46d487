"""What a wrapper that was killed has left: found, ended, and where it may be nobody's, named."""

from __future__ import annotations

import functools
from collections.abc import Callable

from boxcar.shared.cell.duration import GRACE_S
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import attempt
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.sentence import _
from onbox.machine import cgroup, process

MOST_NAMED = 10
_GRACE_S = GRACE_S / 2


def end_processes(scratch: ScratchPaths, cell: str, number: int) -> None:
    """End those of the attempt that can be told."""
    process.end_all(functools.partial(of_attempt, scratch, cell, number), _GRACE_S)


def end_all(
    scratch: ScratchPaths, cell: str, number: int, warn: Callable[[str, str, str], None]
) -> None:
    """Before the next attempt, which would share its folder with them. `warn` hears of others."""
    found = of_attempt(scratch, cell, number)
    end_processes(scratch, cell, number)
    process.reap(found)
    if group := _group(scratch, cell, number):
        cgroup.remove(group)
    since = _began(scratch, cell, number)
    if since and (strangers := process.strangers(since)):
        text = _(
            "attempt {n} at {cell} left no record of its end. Unknown processes of this user began "
            "meanwhile: {names}. They were left alone: end those that are the attempt's",
            n=number,
            cell=cell,
            names=", ".join(strangers[:MOST_NAMED]),
        )
        warn("strangers", text, cell)


def of_attempt(scratch: ScratchPaths, cell: str, number: int) -> list[int]:
    """Known by the cookie, by the log it writes, from the wrapper's record, by the kernel's group,
    or because it came to us: whoever has left all of these is an orphan of the attempt.
    """
    mine = process.with_cookie(*_cookies(scratch, cell, number))
    seen = written_down(scratch, cell, number)
    since = _began(scratch, cell, number)
    orphans = process.orphans(since) if since else []
    group = _group(scratch, cell, number)
    members = cgroup.members(group) if group else []
    return [*{*mine, *process.writers(scratch.log(cell)), *seen, *orphans, *members}]


def _group(scratch: ScratchPaths, cell: str, number: int) -> str | None:
    if (running := _running(scratch, cell, number)) is None:
        return None
    spellings = (cgroup.name_of, cgroup.older_name_of)
    cookies = _cookies(scratch, cell, number)
    names = (name_of(cookie) for name_of in spellings for cookie in cookies)
    found = (cgroup.of_record(running.cgroup, name) for name in names)
    return next(filter(None, found), None)


def _cookies(scratch: ScratchPaths, cell: str, number: int) -> list[str]:
    """Its own, and that of an older release's launcher, which was there before its cell."""
    root, running = str(scratch.root), _running(scratch, cell, number)
    older = [process.older_cookie(root, running.pid)] if running else []
    return [process.cookie(root, cell, number), *older]


def _began(scratch: ScratchPaths, cell: str, number: int) -> str | None:
    """The start time of the attempt's wrapper, where it was of this boot."""
    running = _running(scratch, cell, number)
    if running is None or running.boot_id != process.boot_id():
        return None
    return running.start_time if running.start_time.isdigit() else None


def _running(scratch: ScratchPaths, cell: str, number: int) -> attempt.Running | None:
    running = attempt.read_running(scratch.running(cell))
    return running if running and running.attempt == number else None


def written_down(scratch: ScratchPaths, cell: str, number: int) -> list[int]:
    """What still lives of those that were written down, and of what they started."""
    try:
        seen = attempt.read_processes(scratch.processes(cell))
    except (DamagedError, OSError):
        return []
    if seen is None or seen.attempt != number:
        return []
    left = [p.pid for p in seen.processes if process.is_same(p.pid, p.start_time, seen.boot_id)]
    return [*left, *(below for pid in left for below in process.descendants(pid))]
