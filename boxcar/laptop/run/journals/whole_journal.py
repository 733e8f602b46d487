"""A queue's journal, where it has lost nothing of what it is known to have held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from boxcar.laptop.run.journals import followed
from boxcar.laptop.run.journals.followed import Followed
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared.disk import same_bytes
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import heartbeat, journal, journal_repair
from boxcar.shared.files.journal import JournalEnd, Reading
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.message import Command

T = TypeVar("T")


def read_journal(run: OpenRun, queue: str) -> Reading:
    """The journal on the tier. Raises DamagedError, also where its tail is missing: the heartbeat
    or a copy on the laptop goes further.
    """
    return _whole(run, queue, followed.walk_journals, lambda reading: reading)


def follow_journal(run: OpenRun, queue: str) -> Followed:
    """The same, with what it comes to."""
    return _whole(run, queue, followed.followed_journal, lambda found: found.reading)


def _whole(
    run: OpenRun, queue: str, take: Callable[[Path], T], reading_of: Callable[[T], Reading]
) -> T:
    # Before the journal: an agent writes an event first, and then how far the journal is.
    seen = heartbeat.journal_end(run.tier.heartbeat(queue))
    path = run.tier.journal(queue)
    found = take(path)
    copies = () if begins_anew(run, queue) else _ends_of_copies(run, path)
    for end in (*([seen] if seen else []), *copies):
        if problem := journal.lack(reading_of(found), end):
            raise DamagedError(f"{path}: {problem}", Command("repair"))
    return found


def begins_anew(run: OpenRun, queue: str) -> bool:
    """Whether no agent was on this tier yet. Where each box has its own, that is a box which was
    rented anew: what is known of the queue is the lost one's, and nothing here is missing.
    """
    is_alone = run.plan.durable_scope == EACH_BOX
    files = (run.tier.journal(queue), run.tier.heartbeat(queue))
    return is_alone and not any(file.exists() for file in files)


def _ends_of_copies(run: OpenRun, path: Path) -> Iterator[JournalEnd]:
    """Where those copies of it on the laptop end that it does not begin with."""
    files = (run.results.journals / path.name, *run.boxes.kept(f"journal/{path.name}"))
    copies = [file for file in files if file.exists()]
    if not path.exists():
        return journal_repair.ends_of_copies((copy.read_bytes() for copy in copies), b"")
    other = [copy for copy in copies if not same_bytes.begins_with(path, copy)]
    data = path.read_bytes() if other else b""
    return journal_repair.ends_of_copies((copy.read_bytes() for copy in other), data)
