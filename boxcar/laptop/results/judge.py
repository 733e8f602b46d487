"""The verdict on one cell: what is still missing until its result is proven to lie here.

Pure: it takes what was found (`evidence`, `load`) and touches nothing. `verify` writes its answer
into the receipt, and the gate asks again with what is there at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.run.roster import Missing
from boxcar.shared.artifacts.to_load import files_of, loaded_of, said_as, to_load
from boxcar.shared.cell import terms
from boxcar.shared.disk import digest
from boxcar.shared.errors import Command, InputError
from boxcar.shared.files.manifest import Difference, Manifest
from boxcar.shared.files.plan import Artifact, Plan
from boxcar.shared.files.receipt import (
    BYTES,
    LOADED_ON,
    CellReceipt,
    CellVerdict,
    Finding,
)
from boxcar.shared.process.load_child import UNCHECKED
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, chained, mark

# What the laptop says of a file that it does not load: a trusted one, or any without torch.
#
# What is trusted is never unpickled here: a rented machine wrote it. Its bytes are proven by the
# manifest like any other's, the names in it are listed, and whether it loads says the receipt of
# its box, where the code that wrote it has just run. Pure.


def vouched_by_receipt(
    findings: Iterable[Finding], made: Manifest, sha256: str, receipt: CellReceipt | None
) -> list[Finding]:
    """The findings; of each file that was only read or hashed, what its box says.

    `sha256` is that of the manifest `made`, `receipt` the box's that lies beside it here.
    """
    by_path = _of_this(made, sha256, receipt)
    return [
        _by_its_box(finding, made.box, by_path.get((finding.path, finding.load)))
        if finding.is_by_its_box
        else finding
        for finding in findings
    ]


def lacks_a_receipt(finding: Finding) -> bool:
    return finding.is_by_its_box and LOADED_ON not in finding.facts


def _of_this(
    made: Manifest, sha256: str, receipt: CellReceipt | None
) -> dict[tuple[str, str], Finding]:
    """What the box found in exactly these bytes, by path and how it loaded them."""
    if receipt is None or receipt.manifest_sha256 != sha256:
        return {}
    of_this = (receipt.run, receipt.cell, receipt.attempt) == (made.run, made.cell, made.attempt)
    return {(found.path, found.load): found for found in receipt.findings if of_this}


def _by_its_box(finding: Finding, box: str, found: Finding | None) -> Finding:
    facts = {name: fact for name, fact in finding.facts.items() if name != LOADED_ON}
    if found is None:
        why = _("no torch on this machine") if finding.is_hashed else "load: trusted"
        problem = _(
            "can only be loaded on {box} ({why}), and that box's receipt for exactly these bytes "
            "is not here",
            box=box,
            why=why,
        )
        return replace(finding, problems=(problem,), facts=facts)
    facts = {**found.facts, **facts, LOADED_ON: box}
    return replace(finding, kind=found.kind, problems=found.problems, facts=facts)


# How far the artifacts of a cell were looked into, in a few words for a table.


def how_checked(findings: Sequence[Finding]) -> str:
    """Such as `2 loaded, 1 trusted (loaded on box-a), 1 bad, 1 bytes only, 3 gaps`, or `2 hashed
    (loaded on box-a)`; '' where nothing was looked at.
    """
    good = [finding for finding in findings if finding.is_good]
    # Each counts once: of what nobody could look into nothing else is to be said.
    looked = [finding for finding in good if finding.kind != BYTES]
    bytes_only = len(good) - len(looked)
    hashed = [finding for finding in looked if finding.is_hashed]
    trusted = [finding for finding in looked if finding.is_trusted and not finding.is_hashed]
    counts = (
        _counted(mark("{n} loaded"), len(looked) - len(trusted) - len(hashed)),
        _counted(mark("{n} hashed{where}"), len(hashed), where=_where(hashed)),
        _counted(mark("{n} trusted{where}"), len(trusted), where=_where(trusted)),
        _counted(mark("{n} bad"), len(findings) - len(good)),
        _counted(mark("{n} bytes only"), bytes_only),
        _counted(mark("{n} partly checked"), sum("unlooked" in finding.facts for finding in good)),
        _counted(
            mark("{n} {n:gap|gaps}"), sum(finding.facts.get("gaps", 0) for finding in findings)
        ),
    )
    return chained(mark("{first}, {second}"), [sentence for sentence in counts if sentence])


def _counted(template: str, count: int, **fields: str) -> Sentence | None:
    return Sentence(template, n=count, **fields) if count else None


def _where(findings: Sequence[Finding]) -> str:
    boxes = sorted({found.facts[LOADED_ON] for found in findings if LOADED_ON in found.facts})
    return _(" (loaded on {boxes})", boxes=", ".join(boxes)) if boxes else ""


# Not as it was published; as it was, and it does not load; not here.
DAMAGED, BAD, MISSING = "damaged", "bad", "missing"
_BRING_RECEIPT = Command(
    "pull",
    note=_("once its box has loaded it"),
    or_else=Command("launch", note=_("loads it there")),
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
    def is_to_pull(self) -> bool:
        """Whether nothing is the matter with it but that it is not here."""
        is_bad = self.damage or self.tier_damage or self.problem
        return bool(self.tier_sha256 and self.pulled is None and not is_bad)

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
        return Missing(
            facts.cell, _("{cells:is|are} published but not pulled", cells=1), Command("pull")
        )
    if facts.doubt:
        return facts.doubt
    if facts.damage:
        return Missing(facts.cell, _damage(facts), Command("repair"))
    not_yet = Command("watch" if facts.is_at_work else "launch")
    if facts.has_failed:
        return Missing(
            facts.cell,
            _("failed, so {cells:it has|they have} no result", cells=1),
            _explain(facts.cell),
        )
    return Missing(facts.cell, _("{cells:is|are} not published", cells=1), not_yet)


def _tier_rows(facts: CellFacts, is_tier_there: bool) -> Iterator[Missing]:
    here = facts.manifest_sha256
    if not is_tier_there or here is None:
        return
    if facts.damage:
        what = _("{damage}. The copy here is kept as it was pulled", damage=_damage(facts))
        yield Missing(facts.cell, what, Command("repair"))
    elif facts.tier_sha256 == here:
        return
    elif facts.tier_sha256 is None:
        yield Missing(
            facts.cell,
            _("has no manifest on the durable tier, though one was pulled"),
            _explain(facts.cell),
        )
    elif facts.tier_damage:
        what = _("{damage}. The copy here is kept as it was published", damage=facts.tier_damage)
        yield Missing(facts.cell, what, Command("repair"))
    else:
        both = {"there": digest.short(facts.tier_sha256), "here": digest.short(here)}
        yield Missing(
            facts.cell,
            _(
                "was published again: the manifest on the tier is {there}…, the one here {here}…",
                **both,
            ),
            Command("pull"),
        )


def _damage(facts: CellFacts) -> str:
    return _("is verified in its event log, but {damage}", damage=facts.damage)


def _file_rows(facts: CellFacts) -> Iterator[Missing]:
    for difference in facts.pulled.differences if facts.pulled else ():
        yield Missing(facts.cell, difference.sentence, Command("pull"))


def _carried_rows(facts: CellFacts) -> Iterator[Missing]:
    for difference in facts.pulled.carried_differences if facts.pulled else ():
        what = _(
            "{difference}, an unverified extra file, {problem}",
            difference=difference.path,
            problem=difference.problem,
        )
        yield Missing(facts.cell, what, Command("pull"))


def _artifact_rows(
    cell: str, pulled: Pulled, findings: Sequence[Finding], artifacts: Sequence[Artifact]
) -> Iterator[Missing]:
    manifest = pulled.manifest
    for artifact in artifacts:
        if not files_of(artifact.path, manifest):
            yield Missing(
                cell,
                _("{file} is not among the published files", file=artifact.path),
                _explain(cell),
            )
        elif not loaded_of(artifact.path, manifest):
            yield Missing(
                cell, _("{file} contains only empty files", file=artifact.path), _explain(cell)
            )
    vouched = vouched_by_receipt(findings, manifest, pulled.sha256, pulled.receipt)
    loaded = {finding.path: finding for finding in vouched}
    for file in to_load(artifacts, manifest):
        yield from _load_rows(cell, file, loaded.get(file.path))


def _load_rows(cell: str, file: Artifact, finding: Finding | None) -> Iterator[Missing]:
    if finding is None:
        yield Missing(cell, _("{file} was not loaded", file=file.path), Command("verify"))
        return
    if finding.load != file.load:
        both = {"then": finding.load, "now": file.load}
        what = _(
            "{file} was checked with `load: {then}`, but the job now says `load: {now}`",
            file=file.path,
            **both,
        )
        yield Missing(cell, what, Command("verify"))
        return
    for problem in finding.problems:
        what = _("{head}: {text}", head=file.path, text=problem)
        yield Missing(cell, what, _fix(cell, finding))


def _fix(cell: str, finding: Finding) -> Command:
    if lacks_a_receipt(finding):
        return _BRING_RECEIPT
    return Command("verify") if finding.kind == UNCHECKED else _explain(cell)


def _explain(cell: str) -> Command:
    return Command("explain", ("--cell", cell))


# Files that an earlier `verify` unpickled, because a person had allowed each by name.
#
# What runs code when it is loaded is run once: where the result is the same byte by byte, the
# finding of then is the finding of now. Only the laptop's own receipt says so, never a box.


def kept(facts: CellFacts, earlier: CellVerdict) -> dict[str, tuple[Finding, str]]:
    """The finding of each such file, as `<cell>/<path>`, and when it was unpickled."""
    if not facts.is_whole or facts.manifest_sha256 != earlier.manifest_sha256:
        return {}
    return {
        f"{facts.cell}/{finding.path}": (finding, earlier.unpickled[finding.path])
        for finding in earlier.findings
        if finding.is_good and finding.path in earlier.unpickled
    }


# The files of all cells under one roof, as `<cell>/<path>`: which `verify` loads, and whose each
# finding is. Pure.


def to_be_loaded(plan: Plan, facts: Iterable[CellFacts]) -> tuple[list[Artifact], dict[str, str]]:
    """The files of the cells whose bytes are right; and what job.yaml calls each."""
    files: list[Artifact] = []
    said: dict[str, str] = {}
    for cell in facts:
        if cell.pulled and cell.is_whole:
            artifacts, made = terms.terms_of_cell(plan, cell.cell).artifacts, cell.pulled.manifest
            found, names = to_load(artifacts, made), said_as(artifacts, made)
            files += [replace(file, path=f"{cell.cell}/{file.path}") for file in found]
            said |= {f"{cell.cell}/{f.path}": names.get(f.path, f.path) for f in found}
    return files, said


def allowed(paths: Sequence[str], names: Sequence[str]) -> list[str]:
    """Those that a person named, as `<cell>/<path>` or as `<path>` for every cell.

    Raises InputError for a name that fits nothing.
    """
    fits = {
        name: [path for path in paths if name in (path, path.partition("/")[2])] for name in names
    }
    if unknown := [name for name, found in fits.items() if not found]:
        raise InputError(
            [
                _("--allow-pickle {name}: no artifact here has this name", name=name)
                for name in unknown
            ]
        )
    return sorted({path for found in fits.values() for path in found})


def by_cell(findings: Mapping[str, Finding]) -> dict[str, list[Finding]]:
    """Each cell's own, with the paths of its manifest; they are given by `<cell>/<path>`."""
    found: dict[str, list[Finding]] = {}
    for where, finding in findings.items():
        cell, _, path = where.partition("/")
        found.setdefault(cell, []).append(replace(finding, path=path))
    return found


def vouched_by_box(facts: CellFacts, findings: Sequence[Finding]) -> list[Finding]:
    """A cell's findings; what its box alone may load, by that box's word."""
    pulled = facts.pulled
    if pulled is None:
        return list(findings)
    return vouched_by_receipt(findings, pulled.manifest, pulled.sha256, pulled.receipt)
