"""Which of the run's small files are not as they were written, and what each was, where that is
proven: by its own check, by the journal, or by the digest that names its release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from boxcar.shared import names
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, reason_of, words_of
from boxcar.shared.files import (
    attempt,
    codec,
    delivered,
    heartbeat,
    journal,
    journal_repair,
    manifest,
    receipt,
    release,
)
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.release import Release
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

COPY, JOURNAL, NOTHING = "a copy", "the journal", "nothing"

Copies = dict[str, tuple[bytes, ...]]
_READERS: dict[str, Callable[[Path], Any]] = {
    "heartbeat": heartbeat.read_heartbeat,
    "delivered": delivered.read_delivered,
}


@dataclass(frozen=True)
class Damaged:
    """`path` is below the run's folder. `source` is None where nothing proves what the file was;
    with NOTHING it is put aside, and written anew by who needs it. `queue` is that whose lock is to
    be held, None where nobody writes such a file.
    """

    path: str
    problem: str
    queue: str | None = None
    source: str | None = None
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Tier:
    """The run on the durable tier, with the journals as far as they can be read."""

    paths: DurablePaths
    copies: Copies

    @cached_property
    def events(self) -> dict[str, Sequence[Event]]:
        """Of each journal that can be read."""
        found = {}
        for path in sorted(self.paths.journals.glob("*.jsonl")):
            try:
                found[path.stem] = journal.read_journal(path).events
            except (DamagedError, OSError):
                continue
        return found

    def about(self, cell: str, *types: str) -> list[tuple[str, Event]]:
        """The events about a cell with their queue, the oldest first."""
        found = [
            (queue, event)
            for queue, events in self.events.items()
            for event in events
            if event.cell == cell and event.type in types
        ]
        return sorted(found, key=lambda pair: pair[1].at)

    def owner(self, cell: str) -> tuple[str, Event] | None:
        """The queue that claimed the cell last, and the event that says so."""
        claims = self.about(cell, "cell.claimed")
        left = {event.data.get("from") for _, event in claims}
        last = [(queue, event) for queue, event in claims if queue not in left]
        return last[-1] if last else None

    def queue_of(self, cell: str) -> str | None:
        owner = self.owner(cell)
        return owner[0] if owner else None

    def name(self, path: Path) -> str:
        return path.relative_to(self.paths.root).as_posix()

    def from_copy(self, path: Path, is_right: Callable[[bytes], bool]) -> bytes | None:
        copies = self.copies.get(self.name(path), ())
        return next((copy for copy in copies if is_right(copy)), None)


def find(paths: DurablePaths, copies: Copies) -> list[Damaged]:
    """All of them; what is right is not named. What cannot be read is, and hides no other."""
    tier = Tier(paths, copies)
    found: list[Damaged] = []
    for path, look in _files(tier):
        try:
            found += look(tier, path)
        except OSError as error:
            found.append(
                Damaged(
                    tier.name(path),
                    _("{path}: cannot be read: {error}", path=path, error=reason_of(error)),
                )
            )
    return found


def _files(tier: Tier) -> Iterator[tuple[Path, Callable[[Tier, Path], Iterable[Damaged]]]]:
    """What is looked at, and how."""
    own = tier.paths
    told = {event.cell for events in tier.events.values() for event in events if event.cell}
    beats = {path.stem for path in own.root.glob("heartbeat/*.json")}
    copied = {Path(name).stem for name in tier.copies if name.startswith("journal/")}
    queues = {*beats, *copied, *(path.stem for path in own.journals.glob("*.jsonl"))}
    claimed = {path.stem for path in own.root.glob("claims/*.json")}
    published = {path.parent.name for path in own.cells.glob("*/manifest.json")}
    releases = (path for path in own.releases.glob("*") if names.DIGEST.fullmatch(path.name))
    yield from ((own.journal(queue), _journals) for queue in sorted(queues))
    yield from ((own.claim(cell), _claims) for cell in sorted(told | claimed))
    yield from ((own.manifest(cell), _manifests) for cell in sorted(told | published))
    yield from ((path, _receipts) for path in sorted(own.cells.glob("*/receipt.json")))
    yield from ((path, _accepted) for path in sorted(own.accepted_folder.glob("*.json")))
    yield from ((path, _releases) for path in sorted(releases))
    for folder in _READERS:
        yield from ((path, _written_anew) for path in sorted((own.root / folder).glob("*.json")))


def _journals(tier: Tier, path: Path) -> Iterator[Damaged]:
    queue = path.stem
    data = path.read_bytes() if path.exists() else b""
    seen = heartbeat.journal_end(tier.paths.heartbeat(queue))
    copies = tier.copies.get(tier.name(path), ())
    ends = [*([seen] if seen else []), *journal_repair.ends_of_copies(copies, data)]
    if problem := journal_repair.problem(data, ends, str(path)):
        yield _journal(tier, Damaged(tier.name(path), problem, queue), data, ends)


def _journal(
    tier: Tier, damaged: Damaged, data: bytes, ends: Sequence[journal.JournalEnd]
) -> Damaged:
    for copy in tier.copies.get(damaged.path, ()):
        if found := journal_repair.from_copy(data, copy, ends):
            return _with(damaged, COPY, found)
    return damaged


def _claims(tier: Tier, path: Path) -> Iterator[Damaged]:
    cell = path.stem
    owner = tier.owner(cell)
    if problem := _problem_of_claim(path, cell, owner):
        damaged = Damaged(tier.name(path), problem, owner[0] if owner else None)
        yield _claim(damaged, cell, owner)


def _problem_of_claim(path: Path, cell: str, owner: tuple[str, Event] | None) -> str | None:
    try:
        claim = attempt.read_claim(path)
    except DamagedError as error:
        return error.messages[0].text
    if claim is None:
        return (
            _("is missing, though {owner} has claimed {cell}", owner=owner[0], cell=cell)
            if owner
            else None
        )
    if claim.cell not in (cell, attempt.OF_NO_CELL):
        return _("is the claim of {cell}", cell=claim.cell)
    if owner is None or claim.queue == owner[0] or _was_moved_since(claim, owner[1]):
        return None
    return _(
        "names {queue}, though the journal of {owner} has claimed {cell}",
        queue=claim.queue,
        owner=owner[0],
        cell=cell,
    )


def _was_moved_since(claim: Claim, claimed: Event) -> bool:
    """Its new queue says nothing in its journal before its agent begins the cell."""
    return claim.moved_from is not None and claim.at > claimed.at


def _claim(damaged: Damaged, cell: str, owner: tuple[str, Event] | None) -> Damaged:
    if owner is None:
        return damaged
    queue, event = owner
    claim = Claim(cell, queue, event.data["box"], event.at)
    return _with(damaged, JOURNAL, codec.to_document(claim))


def _manifests(tier: Tier, path: Path) -> Iterator[Damaged]:
    cell = path.parent.name
    published = tier.about(cell, "cell.synced", "cell.verified")
    if not published:
        yield from _unreadable_manifest(tier, path, cell)
        return
    if _is_newer(tier, cell, published[-1][1]):
        return
    sha256 = published[-1][1].data["manifest_sha256"]
    data = path.read_bytes() if path.exists() else b""
    if digest.of_bytes(data) != sha256:
        what = _("is not the one that the journal names") if data else _("is missing")
        damaged = Damaged(
            tier.name(path), _("{head}: {text}", head=path, text=what), tier.queue_of(cell)
        )
        yield _by_digest(tier, damaged, path, sha256)


def _unreadable_manifest(tier: Tier, path: Path, cell: str) -> Iterator[Damaged]:
    """One that no journal tells of, as far as they can be read: the journals come first."""
    try:
        manifest.read_manifest(path)
    except FileNotFoundError:
        return
    except DamagedError as error:
        problem = _("{text}. Only a journal can prove what it was", text=error.messages[0].text)
        yield Damaged(tier.name(path), problem, tier.queue_of(cell))


def _is_newer(tier: Tier, cell: str, said: Event) -> bool:
    """Whether a later attempt is published, and its agent died before it could say so."""
    try:
        found = manifest.read_manifest(tier.paths.manifest(cell))
    except (DamagedError, FileNotFoundError):
        return False
    ended = {event.data["attempt"] for _, event in tier.about(cell, "cell.succeeded")}
    return found.cell == cell and found.attempt > said.data["attempt"] and found.attempt in ended


def _by_digest(tier: Tier, damaged: Damaged, path: Path, sha256: str) -> Damaged:
    found = tier.from_copy(path, lambda copy: digest.of_bytes(copy) == sha256)
    return _with(damaged, COPY, found) if found else damaged


def _receipts(tier: Tier, path: Path) -> Iterator[Damaged]:
    try:
        receipt.read_cell(path)
    except DamagedError as error:
        cell = path.parent.name
        about = Damaged(tier.name(path), error.messages[0].text, tier.queue_of(cell))
        found = tier.from_copy(path, lambda data: _is_receipt(tier, cell, data))
        yield _with(about, COPY, found) if found else about


def _is_receipt(tier: Tier, cell: str, data: bytes) -> bool:
    """Whether it is of what is published: nothing else proves a receipt."""
    found = _decoded(receipt.CellReceipt, data)
    said = tier.about(cell, "cell.synced", "cell.verified")
    return bool(found and said) and found.manifest_sha256 == said[-1][1].data["manifest_sha256"]


def _accepted(tier: Tier, path: Path) -> Iterator[Damaged]:
    """What the laptop has proven: `verify` writes it anew."""
    try:
        receipt.read_accepted(path)
    except DamagedError as error:
        yield Damaged(tier.name(path), words_of(error))


def _releases(tier: Tier, folder: Path) -> Iterator[Damaged]:
    path = folder / release.FILE
    try:
        listed = release.read_release(folder)
    except FileNotFoundError:
        return  # a push that was broken off
    except DamagedError as error:
        yield _list_of_files(tier, Damaged(tier.name(path), error.messages[0].text), path)
        return
    for difference in manifest.compare(folder, listed.files):
        file = next(file for file in listed.files if file.path == difference.path)
        at = folder / file.path
        about = Damaged(tier.name(at), _("{head}: {text}", head=at, text=difference.problem))
        yield _by_digest(tier, about, at, file.sha256)


def _list_of_files(tier: Tier, damaged: Damaged, path: Path) -> Damaged:
    def is_right(data: bytes) -> bool:
        found = _decoded(Release, data)
        return found is not None and found.digest == path.parent.name

    found = tier.from_copy(path, is_right)
    return _with(damaged, COPY, found) if found else damaged


def _written_anew(tier: Tier, path: Path) -> Iterator[Damaged]:
    """What nothing is lost with: a heartbeat comes again, and events that were sent are sent again
    with the same id.
    """
    try:
        _READERS[path.parent.name](path)
    except DamagedError as error:
        about = Damaged(tier.name(path), error.messages[0].text, path.stem)
        yield _with(about, NOTHING, b"")


def _with(damaged: Damaged, source: str, content: bytes) -> Damaged:
    return Damaged(damaged.path, damaged.problem, damaged.queue, source, content)


def _decoded(cls: Any, data: bytes) -> Any:
    try:
        return codec.from_document(cls, data, "a copy")
    except DamagedError:
        return None


def queues(found: Iterable[Damaged]) -> list[str]:
    """Whose locks are to be held while these are put back."""
    return sorted({damaged.queue for damaged in found if damaged.queue and damaged.source})
