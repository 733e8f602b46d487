"""What earlier looks have worked out of files that have not changed since: for who shows a run.

A journal is known by its bytes: what it comes to is taken from here only where it begins with
exactly those that were followed then, and what was appended since is followed from there. What was
asked for is known by the bytes of all that asks: files here, queues, plans of releases, journals. A
manifest is known by what the disk says of it. It is a cache: lost, damaged or of another Boxcar it
is worked out anew. `status` and `watch` have it; whoever decides something (the gate, `verify`,
`pull`, the agents) reads the files themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from boxcar.laptop.common.kept import cache_file
from boxcar.laptop.common.kept.late import Late
from boxcar.laptop.run import roster_sources
from boxcar.laptop.run.journals import followed, kept_rows
from boxcar.laptop.run.journals.followed import Followed
from boxcar.laptop.run.journals.kept_rows import Known
from boxcar.laptop.run.journals.known_manifests import KnownManifests
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Asked, RosterCell
from boxcar.shared import state
from boxcar.shared.disk import digest
from boxcar.shared.files import journal, journal_chain, release
from boxcar.shared.files.journal import Reading
from boxcar.shared.files.journal_chain import LINE_FEED

# Below this all journals are followed as fast as they are found here.
WORTH_EVENTS = 1000
# It is written anew once this part of all events was followed since.
_SHARE = 10


class LookedBefore:
    """Of one run; `path` is read at once, and is gone where it is of no use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journals: dict[str, Known] = {}
        # Of the newest look: by queue the cells that something happened to since the one before,
        # and the queues whose journal is known as it is now.
        self._since: dict[str, tuple[RosterCell, ...]] = {}
        self._held = set[str]()
        # What was asked for, by what it is known besides the journals.
        self._asked_by, self._asked = "", cast("tuple[str, Asked] | None", None)
        self.manifests = KnownManifests()
        self._new_events, self._is_asked_new = 0, False
        cache_file.read(path, kept_rows.SHAPE, self._take)

    # --- journals

    def follow(self, path: Path) -> Followed:
        """As `followed.of_path`. Raises DamagedError, OSError."""
        self._since.pop(path.stem, None)
        self._held.discard(path.stem)
        data = followed.bytes_of(path)
        known = self._journals.get(path.stem)
        if known is None or digest.of_bytes(memoryview(data)[: known.size_bytes]) != known.sha256:
            found = followed.of_bytes(data, path)
            self._remember(path.stem, data, found, found.reading.end.seq)
            return found
        after = known.end if known.size_bytes else None
        rest = journal.parse(data[known.size_bytes :], str(path), after)
        is_whole = not rest.torn and rest.after == LINE_FEED
        if not is_whole:
            return followed.of_bytes(data, path)
        return self._followed_on(path, data, known, rest)

    def _followed_on(self, path: Path, data: bytes, known: Known, rest: Reading) -> Followed:
        queue, count = path.stem, known.end.seq + len(rest.events)
        self._since[queue] = followed.cells(queue, rest.events)
        found = Followed(
            followed.late_reading(data, str(path), count, (*known.checks, *rest.checks)),
            state.replay(rest.events, known.state) if rest.events else known.state,
            Late(lambda: followed.cells(queue, rest.events, known.begun)),
        )
        if rest.events:
            self._remember(queue, data, found, len(rest.events))
        else:
            self._held.add(queue)
        return found

    def _remember(self, queue: str, data: bytes, found: Followed, new: int) -> None:
        last = data[data.rfind(LINE_FEED, 0, -1) + 1 :]
        if data and not (data.endswith(LINE_FEED) and journal_chain.has_check(last)):
            return
        sha256 = digest.of_bytes(data)
        checks = tuple(found.reading.checks[-followed.CHECKS_KEPT :])
        self._journals[queue] = Known(len(data), sha256, checks, found.state, found.begun)
        self._new_events += new
        self._held.add(queue)

    # --- what was asked for

    def asked(self, run: OpenRun, queues: Iterable[str]) -> Asked | None:
        """What was asked for when these journals were followed before, where that still holds."""
        queues = [*queues]
        self._asked_by = _asked_by(run, queues)
        if self._asked is None or not self._asked_by or self._asked[0] != self._asked_by:
            return None
        if not self._since.keys() >= {*queues}:
            return None
        found = self._asked[1]
        begun = [cell for queue in queues for cell in self._since[queue]]
        names = {cell.name for cell in begun}
        known = {cell.name: cell for cell in found.roster.cells if cell.name in names}
        is_same = found.unlike.isdisjoint(names) and all(
            cell.name in known and _is_as_asked(cell, known[cell.name]) for cell in begun
        )
        return found if is_same else None

    def remember(self, asked: Asked, queues: Iterable[str]) -> None:
        """What these journals, as they were followed just now, and all else were found to say."""
        is_whole = self._held >= {*queues} and not asked.roster.doubts
        self._asked = (self._asked_by, asked) if is_whole and self._asked_by else None
        self._is_asked_new = self._asked is not None

    # --- the file

    def write(self) -> None:
        """For the next look, where that is worth it. A disk that is full keeps nobody from one."""
        events = sum(known.end.seq for known in self._journals.values())
        if events < WORTH_EVENTS or not (
            self._is_asked_new
            or self._new_events * _SHARE >= max(events, 1)
            or self.manifests.new * _SHARE >= max(len(self.manifests), 1)
        ):
            return
        journals = {queue: kept_rows.of_journal(known) for queue, known in self._journals.items()}
        asked = self._asked and [self._asked[0], kept_rows.of_asked(self._asked[1])]
        kept = [journals, asked, self.manifests.kept()]
        if cache_file.write(self._path, kept_rows.SHAPE, kept):
            self._new_events, self.manifests.new, self._is_asked_new = 0, 0, False

    def _take(self, kept: Any) -> None:
        journals, asked, manifests = kept
        self._journals = {queue: kept_rows.journal(row) for queue, row in journals.items()}
        self._asked = asked and (asked[0], kept_rows.asked(asked[1]))
        self.manifests.take(manifests)


def _asked_by(run: OpenRun, queues: Sequence[str]) -> str:
    """The digest of all that says what is asked for but the journals of these queues; '' where
    nobody can tell.
    """
    if not (run.project.known_by and run.tier.root.exists()):
        return ""
    tier = run.tier
    try:
        plans = (tier.releases.glob(f"*/{name}") for name in (release.FILE, release.PLAN))
        files = sorted(itertools.chain(tier.queues.glob("*.txt"), *plans))
        found = [(str(path), digest.of_file(path)) for path in files]
    except OSError:
        return ""
    return digest.of_json([run.project.known_by, queues, found])


def _is_as_asked(ran: RosterCell, asked: RosterCell) -> bool:
    """Whether a cell that was begun, as far as its event says how, is what was asked for."""
    return not ran.cfg or roster_sources.is_asked_by(asked, asked.epochs, ran)
