"""Receipts: what was loaded and looked at, and what was found.

A cell's receipt is written on the box after its artifacts were loaded there. The run's receipt is
written on the laptop by `verify`; its digest is what an approval is bound to.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, NewerError
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.plan import SAFE, TRUSTED
from boxcar.shared.known_secrets import KnownSecrets
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import _, chained, mark

# That the laptop has proven a result which its box called bad, could not check, or has lost.
#
# `verify` has it written on the durable tier, and `launch` on that of a box that was rented anew,
# so that no agent trains the cell again. It holds for one manifest, and says nothing of any other
# result.


# Who proved it, in `cell.verified`.
LAPTOP = "laptop"


@dataclass(frozen=True)
class Accepted:
    """`unpickled` are the files that were loaded because a person had allowed it by name; `boxcar`
    is the version that loaded them. `is_lent`: the box was rented anew; of the result it has the
    manifest, and the files only where a cell comes after it.
    """

    FORMAT: ClassVar[str] = "accepted"
    VERSION: ClassVar[int] = 1
    CHECKED_SINCE: ClassVar[int] = 1

    run: str
    cell: str
    manifest_sha256: str
    at: str
    unpickled: tuple[str, ...]
    boxcar: str
    is_lent: bool = field(default=False, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_accepted(path: Path) -> Accepted | None:
    """None where there is none. Raises DamagedError with the way out, OSError."""
    try:
        return codec.from_document(Accepted, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except NewerError:
        raise
    except DamagedError as error:
        raise DamagedError(
            _("{error}; `verify` on the laptop writes it anew", error=error)
        ) from error


def accepted_result(tier: DurablePaths, cell: str) -> Accepted | None:
    """That of the very result that is published now. Raises DamagedError, OSError."""
    found = read_accepted(tier.accepted(cell))
    if found is None:
        return None
    try:
        bound_to = (tier.run, cell, manifest.sha256(tier.manifest(cell)))
    except FileNotFoundError:
        return None
    return found if (found.run, found.cell, found.manifest_sha256) == bound_to else None


# The kind of a file that nobody could look into: its bytes are as they were published, no more.
BYTES = "bytes"
# Facts of a file of `load: trusted`: what its pickle names; and, on the laptop, the box that has
# loaded these very bytes, by that box's own receipt.
GLOBALS, LOADED_ON = "globals", "loaded_on"
# A fact of such a file: why, where there is more to say than that its kind is not known.
WHY_BYTES = "why_bytes"
# A fact of a file that the laptop could only hash, because it has no torch.
HASHED = "hashed_here"


@dataclass(frozen=True)
class Finding:
    """One file, loaded. `problems` is empty where it is good; `facts` says what it holds.

    `load` is how the plan wants it loaded.
    """

    path: str
    kind: str
    problems: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    load: str = field(default=SAFE, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        return not self.problems

    @property
    def sentence(self) -> str:
        """Its path, and all that is wrong with it."""
        problems = chained(mark("{first}, {second}"), self.problems)
        return _("{head}: {text}", head=self.path, text=problems)

    @property
    def is_trusted(self) -> bool:
        """Whether it is of `load: trusted` and of a kind that may hold code: only its box loads it.

        Not where a person let it be loaded elsewhere, by name.
        """
        return self.load == TRUSTED and GLOBALS in self.facts

    @property
    def is_hashed(self) -> bool:
        """Whether it was not loaded where this was found, and only its bytes are proven."""
        return bool(self.facts.get(HASHED))

    @property
    def is_by_its_box(self) -> bool:
        """Whether only its box can say that it loads."""
        return self.is_trusted or self.is_hashed


def without_secrets(found: Finding, known: KnownSecrets) -> Finding:
    """Its path is a file's name and stays."""
    problems, facts = known.left_out_of((found.problems, found.facts))
    return replace(found, problems=problems, facts=facts)


@dataclass(frozen=True)
class Number:
    """What the job's `metrics` name, as it was found; None with a `note` that says why not."""

    name: str
    value: float | None
    note: str = field(default="", metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def number_without_secrets(found: Number, known: KnownSecrets) -> Number:
    return replace(found, name=known.left_out_of(found.name), note=known.left_out_of(found.note))


@dataclass(frozen=True)
class CellReceipt:
    FORMAT: ClassVar[str] = "cell-receipt"
    VERSION: ClassVar[int] = 1

    run: str
    cell: str
    attempt: int
    manifest_sha256: str
    checked_at: str
    findings: tuple[Finding, ...]
    metrics: tuple[Number, ...] = field(default=(), metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """A receipt of nothing proves nothing."""
        return bool(self.findings) and all(finding.is_good for finding in self.findings)


@dataclass(frozen=True)
class CellVerdict:
    """One cell of the roster, as `verify` left it: verified, abandoned, or what is missing.

    `missing` is empty for a cell that is verified; `because` is set for one that was abandoned.
    `is_dropped`: it was never begun, and its line was commented out. `unpickled`: the files that
    were loaded because a person had allowed it by name, and when each was.
    """

    cell: str
    queue: str
    manifest_sha256: str | None = None
    missing: tuple[str, ...] = ()
    because: str | None = None
    findings: tuple[Finding, ...] = ()
    is_dropped: bool = field(default=False, metadata=codec.LATER)
    unpickled: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    metrics: tuple[Number, ...] = field(default=(), metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def modes(self) -> list[list[str]]:
        """Each file that was not loaded here and safely, and how."""
        how = [(found.path, HASHED if found.is_hashed else found.load) for found in self.findings]
        return sorted([path, word] for path, word in how if word != SAFE)

    @property
    def is_settled(self) -> bool:
        """Verified, dropped, or given up for a reason. What is not known is not settled."""
        if self.because or self.is_dropped:
            return True
        is_proven = self.manifest_sha256 is not None and not self.missing
        return is_proven and all(finding.is_good for finding in self.findings)


@dataclass(frozen=True)
class RunReceipt:
    FORMAT: ClassVar[str] = "receipt"
    VERSION: ClassVar[int] = 1

    run: str
    made_at: str
    cells: tuple[CellVerdict, ...]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        return bool(self.cells) and all(cell.is_settled for cell in self.cells)

    @property
    def digest(self) -> str:
        """Bound to the roster, the manifests, what was abandoned, and how what is not loaded safely
        was loaded; not to the time.
        """
        rows = [
            [
                *(c.cell, c.manifest_sha256, list(c.missing), c.because),
                *["dropped"] * c.is_dropped,
                *c.modes,
            ]
            for c in self.cells
        ]
        return digest.of_json([self.run, sorted(rows, key=str)])


@dataclass(frozen=True)
class Teardown:
    """The approval of one named verb for one receipt, and how far the verb has got."""

    FORMAT: ClassVar[str] = "teardown"
    VERSION: ClassVar[int] = 1

    run: str
    digest: str
    verb: str
    approved_at: str
    approved_by: str  # how: "typed" or "--approve"
    finished_at: str | None = None
    # Whose part is done, and since when.
    boxes: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # Boxes that a person said are gone for good, and why. They are not asked.
    gone: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # Where the verb was seen to begin, and when; and where it was seen to have ended the box.
    told: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    off: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # By box the ids that a person typed, or approved by a digest: these may end for good.
    to_destroy: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # Boxes that the provider's own list showed gone, and those that a person saw end there.
    seen_gone: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    seen_off: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # Boxes that their provider was seen to have stopped: the disk bills until they are destroyed.
    stopped: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # Other runs on its boxes that a person named before these were ended, and when.
    beside: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    # Credentials that a box kept which was given up, by their name: which boxes. Once a person says
    # that one was replaced, it is in `rotated`, and since when.
    exposed: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    rotated: dict[str, str] = field(default_factory=dict, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_run(path: Path) -> RunReceipt:
    return parse_run(path.read_bytes(), path)


def parse_run(data: bytes, path: Path) -> RunReceipt:
    """`path` is where these bytes lie."""
    return codec.from_document(RunReceipt, data, str(path))


def read_cell(path: Path) -> CellReceipt:
    return parse_cell(path.read_bytes(), path)


def parse_cell(data: bytes, path: Path) -> CellReceipt:
    """`path` is where these bytes lie."""
    return codec.from_document(CellReceipt, data, str(path))


def read_teardown(path: Path) -> Teardown | None:
    """The approved teardown, or None where nothing was approved yet."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return codec.from_document(Teardown, data, str(path))
