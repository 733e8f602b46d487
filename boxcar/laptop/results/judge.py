"""The verdict on one cell: what is still missing until its result is proven to lie here.

Pure: it takes what was found (`evidence`, `load`) and touches nothing. `verify` writes its answer
into the receipt, and the gate asks again with what is there at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxcar.laptop.results import trusted
from boxcar.laptop.run.missing import Missing
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import digest
from boxcar.shared.files.manifest import Difference, Manifest
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import CellReceipt, CellVerdict, Finding
from boxcar.shared.load_child import UNCHECKED
from boxcar.shared.message import Command
from boxcar.shared.record import dataclass
from boxcar.shared.to_load import files_of, loaded_of, to_load

# Not as it was published; as it was, and it does not load; not here.
DAMAGED, BAD, MISSING = "damaged", "bad", "missing"
_BRING_RECEIPT = Command(
    "pull",
    note="once its box has loaded it",
    or_else=Command("launch", note="has it loaded there"),
)


@dataclass(frozen=True)
class Pulled:
    """The laptop's copy of a cell, compared with its own manifest just now, and the receipt of its
    box that lies beside it. `carried_differences` are those of what proves nothing.
    """

    manifest: Manifest
    sha256: str  # of the manifest's bytes
    differences: tuple[Difference, ...] = ()
    receipt: CellReceipt | None = None
    carried_differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class CellFacts:
    """What is known of a cell's two copies at one moment.

    `tier_sha256` is that of the manifest on the durable tier, None where there is none;
    `tier_damage` says why that one is not as it was published, where this is known. `problem` says
    why one of the copies could not be judged at all. `has_failed`: so says the journal. The agent
    of its queue `is_at_work`, or may be. `damage` is why the tier has not what the journal calls
    verified. `is_dropped` and `doubt` are the roster's.
    """

    cell: str
    queue: str
    tier_sha256: str | None = None
    tier_damage: str | None = None
    pulled: Pulled | None = None
    problem: str | None = None
    has_failed: bool = False
    is_at_work: bool = False
    damage: str | None = None
    is_dropped: bool = False
    doubt: Missing | None = None

    @property
    def manifest_sha256(self) -> str | None:
        return self.pulled.sha256 if self.pulled else None

    @property
    def lack(self) -> str:
        """In a word what is the matter with a cell that is not verified."""
        if self.damage or self.tier_damage or self.problem or (self.pulled and not self.is_all):
            return DAMAGED
        is_the_published = self.tier_sha256 in (None, self.manifest_sha256)
        return BAD if self.pulled and is_the_published else MISSING

    @property
    def is_whole(self) -> bool:
        """Whether every pulled file is as its manifest says, so that loading it means something."""
        return self.pulled is not None and not self.pulled.differences and not self.problem

    @property
    def is_all(self) -> bool:
        """The same, and everything that was carried is here as well."""
        return self.is_whole and not (self.pulled and self.pulled.carried_differences)


def missing(
    facts: CellFacts,
    findings: Sequence[Finding],
    *,
    artifacts: Sequence[Artifact],
    is_tier_there: bool,
) -> tuple[Missing, ...]:
    """What keeps the cell from being verified; empty where it is, or was dropped.

    `artifacts` are the plan's. Without a tier (it was removed by a teardown that goes on) the
    laptop's copy is judged by its own manifest alone, and what was only carried keeps nothing from
    being verified: there is nothing left that a teardown could lose.
    """
    if facts.problem:
        return (Missing(facts.cell, facts.problem, Command("pull")),)
    if facts.is_dropped:
        return ()
    if facts.pulled is None:
        return (_not_here(facts),)
    rows = [*_tier_rows(facts, is_tier_there), *_file_rows(facts)]
    rows += _carried_rows(facts) if is_tier_there else ()
    if facts.is_whole:
        rows += _artifact_rows(facts.cell, facts.pulled, findings, artifacts)
    return tuple(rows)


def judge_cell(
    facts: CellFacts, rows: Sequence[Missing], findings: Sequence[Finding], because: str | None
) -> CellVerdict:
    """The verdict for the receipt. A cell that lacks nothing is verified, and never abandoned."""
    return CellVerdict(
        cell=facts.cell,
        queue=facts.queue,
        manifest_sha256=facts.manifest_sha256,
        missing=tuple(row.what for row in rows),
        because=because if rows else None,
        findings=tuple(findings),
        is_dropped=facts.is_dropped and not rows,
    )


def _not_here(facts: CellFacts) -> Missing:
    if facts.tier_sha256 and not facts.damage:
        return Missing(facts.cell, Sentence("gate.not_pulled"), Command("pull"))
    if facts.doubt:
        return facts.doubt
    if facts.damage:
        return Missing(facts.cell, _damage(facts), Command("repair"))
    not_yet = Command("watch" if facts.is_at_work else "launch")
    command = _explain(facts.cell) if facts.has_failed else not_yet
    return Missing(facts.cell, Sentence("gate.not_published"), command)


def _tier_rows(facts: CellFacts, is_tier_there: bool) -> Iterator[Missing]:
    here = facts.manifest_sha256
    if not is_tier_there or here is None:
        return
    if facts.damage:
        what = Sentence("gate.copy_as_pulled", damage=_damage(facts))
        yield Missing(facts.cell, what, Command("repair"))
    elif facts.tier_sha256 == here:
        return
    elif facts.tier_sha256 is None:
        yield Missing(facts.cell, Sentence("gate.tier_lost"), _explain(facts.cell))
    elif facts.tier_damage:
        what = Sentence("gate.copy_as_published", damage=facts.tier_damage)
        yield Missing(facts.cell, what, Command("repair"))
    else:
        both = {"there": digest.short(facts.tier_sha256), "here": digest.short(here)}
        yield Missing(facts.cell, Sentence("gate.again", **both), Command("pull"))


def _damage(facts: CellFacts) -> str:
    return Sentence("gate.damage", damage=facts.damage)


def _file_rows(facts: CellFacts) -> Iterator[Missing]:
    for difference in facts.pulled.differences if facts.pulled else ():
        yield Missing(facts.cell, f"{difference.path} {difference.problem}", Command("pull"))


def _carried_rows(facts: CellFacts) -> Iterator[Missing]:
    for difference in facts.pulled.carried_differences if facts.pulled else ():
        what = f"{difference.path}, which is carried and not proven, {difference.problem}"
        yield Missing(facts.cell, what, Command("pull"))


def _artifact_rows(
    cell: str, pulled: Pulled, findings: Sequence[Finding], artifacts: Sequence[Artifact]
) -> Iterator[Missing]:
    manifest = pulled.manifest
    for artifact in artifacts:
        if not files_of(artifact.path, manifest):
            yield Missing(
                cell, Sentence("gate.unpublished_file", file=artifact.path), _explain(cell)
            )
        elif not loaded_of(artifact.path, manifest):
            yield Missing(cell, Sentence("gate.empty_files", file=artifact.path), _explain(cell))
    vouched = trusted.vouched_by_receipt(findings, manifest, pulled.sha256, pulled.receipt)
    loaded = {finding.path: finding for finding in vouched}
    for file in to_load(artifacts, manifest):
        yield from _load_rows(cell, file, loaded.get(file.path))


def _load_rows(cell: str, file: Artifact, finding: Finding | None) -> Iterator[Missing]:
    if finding is None:
        yield Missing(cell, Sentence("gate.not_loaded", file=file.path), Command("verify"))
        return
    if finding.load != file.load:
        both = {"then": finding.load, "now": file.load}
        what = Sentence("gate.loaded_otherwise", file=file.path, **both)
        yield Missing(cell, what, Command("verify"))
        return
    for problem in finding.problems:
        yield Missing(cell, f"{file.path}: {problem}", _fix(cell, finding))


def _fix(cell: str, finding: Finding) -> Command:
    if trusted.lacks_a_receipt(finding):
        return _BRING_RECEIPT
    return Command("verify") if finding.kind == UNCHECKED else _explain(cell)


def _explain(cell: str) -> Command:
    return Command("explain", ("--cell", cell))
