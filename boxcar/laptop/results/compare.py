"""What lies there of each cell at this moment: the tier's manifest, and the laptop's copy.

Reads and hashes; it judges nothing (`verdict` does) and writes nothing. A copy that cannot be
judged says why, and counts as missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.results.judge import CellFacts, Pulled
from boxcar.laptop.results.results_folder import from_second_home
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.roster import Missing, RosterCell
from boxcar.shared import paths
from boxcar.shared.disk import digest, tree_sync
from boxcar.shared.errors import Command, DamagedError, NewerError, message_of, words_of
from boxcar.shared.files import journal, manifest, receipt
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.receipt import CellReceipt
from boxcar.shared.sentence import _

OnFile = Callable[[int], None]
CompareOne = Callable[[Path, FileRecord], manifest.Difference | None]


def gather(
    run: OpenRun,
    cells: Iterable[RosterCell],
    failed: Collection[str],
    damaged: Mapping[str, str],
    *,
    at_work: Collection[str] = (),
    on_file: OnFile = lambda size_bytes: None,
    on_cell: Callable[[str], None] = lambda cell: None,
    compare_one: CompareOne = manifest.compare_one,
) -> list[CellFacts]:
    """The facts of each cell, every pulled file hashed anew, cells side by side.

    `failed` are those that the journals know as failed, `damaged` says of which the tier has not
    what they call verified, `at_work` are the queues whose agents may run. `on_cell` hears which
    cell begins, `on_file` the size of each file once it is compared, both from any thread.
    `compare_one` is as in `look`.
    """

    def facts_of(cell: RosterCell) -> CellFacts:
        on_cell(cell.name)
        return replace(
            compare_folder(run, cell, on_file, compare_one),
            has_failed=cell.name in failed,
            is_at_work=cell.queue in at_work,
            damage=damaged.get(cell.name),
        )

    return tree_sync.run_in_parallel(facts_of, list(cells))


def compare_folder(
    run: OpenRun,
    cell: RosterCell,
    on_file: OnFile = lambda size_bytes: None,
    compare_one: CompareOne = manifest.compare_one,
) -> CellFacts:
    """Both copies of one cell. `on_file` gets the size of each file once it is compared, by
    `compare_one`: unless that is another's, every file is hashed.
    """
    facts = CellFacts(cell.name, cell.queue, is_dropped=cell.is_dropped, doubt=cell.doubt)
    try:
        facts = _with_tier(facts, run)
        return replace(facts, pulled=_pulled(run, cell.name, on_file, compare_one))
    except (OSError, DamagedError) as error:
        return replace(facts, problem=words_of(error))


def look_here(run: OpenRun, cell: RosterCell) -> CellFacts:
    """The laptop's copy alone, every file hashed: for where no tier is known to have the cell."""
    facts = CellFacts(cell.name, cell.queue)
    try:
        return replace(facts, pulled=_pulled(run, cell.name, lambda size_bytes: None))
    except (OSError, DamagedError) as error:
        return replace(facts, problem=words_of(error))


def beside_the_manifests(run: OpenRun, cells: Iterable[RosterCell]) -> list[Missing]:
    """The journals and the cells' receipts, which no manifest lists, where they are not the tier's.

    Empty once the tier is gone: then there is nothing to compare them with.
    """
    tier, here = run.tier, run.results
    pairs = [
        *((path, here.journals / path.name) for path in sorted(tier.journals.glob("*.jsonl"))),
        *((tier.receipt(cell.name), here.cell(cell.name) / paths.RECEIPT) for cell in cells),
    ]
    are_stale = tree_sync.run_in_parallel(lambda pair: _is_stale(*pair), pairs)
    return [_other(*pair) for pair, is_stale in zip(pairs, are_stale, strict=True) if is_stale]


def _is_stale(original: Path, copy: Path) -> bool:
    with contextlib.suppress(OSError):
        if digest.has_same_bytes(original, copy):
            return False
    # Of a cell that is not here no receipt is missing.
    is_here = original.name != paths.RECEIPT or (copy.parent / paths.MANIFEST).exists()
    return is_here and original.exists()


def _other(original: Path, copy: Path) -> Missing:
    """It is damaged where it lies, or was written again."""
    is_receipt = original.name == paths.RECEIPT
    try:
        if is_receipt:
            receipt.read_cell(original)
        else:
            journal.read_journal(original)
    except (OSError, DamagedError) as error:
        name = _("receipt")
        if not is_receipt:
            name = _("event log {queue}", queue=original.stem)
        what = _(
            "the {name} on the tier is damaged: {text}", name=name, text=message_of(error).text
        )
        return Missing(None, what, Command("repair"))
    return Missing(None, _("{path} differs from the one on the tier", path=copy), Command("pull"))


def check_manifest(found: Manifest, run: str, cell: str, where: Path) -> None:
    """Raise DamagedError for a manifest that was put into another cell's or run's folder."""
    if (found.run, found.cell) != (run, cell):
        raise DamagedError(
            _(
                "{where}: expected the manifest of {run}/{cell}, found {found_run}/{found_cell}",
                where=where,
                run=run,
                cell=cell,
                found_run=found.run,
                found_cell=found.cell,
            )
        )


def refuse_link(folder: Path, relative: str) -> None:
    """Raise DamagedError where a step of `relative` is a link: what is behind it is not the run's.

    A link from the results to the tier would look like a good copy, and die with the tier.
    """
    if paths.has_symlink(folder, relative):
        raise DamagedError(
            _("{path}: is a symbolic link; expected Boxcar's own file", path=folder / relative)
        )


def _with_tier(facts: CellFacts, run: OpenRun) -> CellFacts:
    tier, cell = run.tier, facts.cell
    refuse_link(tier.root, f"cells/{cell}/{paths.MANIFEST}")
    try:
        data = tier.manifest(cell).read_bytes()
    except FileNotFoundError:
        # What came from the second home is held against what that had.
        return replace(facts, tier_sha256=from_second_home(run.results).get(cell))
    return replace(facts, tier_sha256=digest.of_bytes(data), tier_damage=damage(run, cell, data))


def damage(run: OpenRun, cell: str, data: bytes) -> str | None:
    """Why `data` is not the manifest that was published; None where nothing speaks against it.

    The receipt beside it speaks against it where that is bound to the copy here: what is published
    again comes with a receipt of its own, or with none yet.
    """
    path = run.tier.manifest(cell)
    try:
        manifest.parse_manifest(data, str(path))
        checked = receipt.read_cell(run.tier.receipt(cell)).manifest_sha256
        here = manifest.sha256(run.results.manifest(cell))
    except FileNotFoundError:
        return None
    except NewerError:
        raise
    except DamagedError as error:
        return _(
            "the manifest or the receipt on the tier is damaged: {text}",
            text=message_of(error).text,
        )
    found = digest.of_bytes(data)
    if checked != here or found == here:
        return None
    return _(
        "the manifest on the tier was damaged after it was checked: it {found}",
        found=digest.other(found, here),
    )


def _pulled(
    run: OpenRun, cell: str, on_file: OnFile, compare_one: CompareOne = manifest.compare_one
) -> Pulled | None:
    path = run.results.manifest(cell)
    refuse_link(run.results.root, f"cells/{cell}/{paths.MANIFEST}")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    found = manifest.parse_manifest(data, str(path))
    check_manifest(found, run.plan.run, cell, path)
    _refuse_same_file(path, run.tier.manifest(cell))
    receipt_ = _receipt_beside(path.parent)
    return Pulled(
        found,
        digest.of_bytes(data),
        compare(path.parent, found.files, on_file, compare_one),
        receipt_,
        compare(path.parent, found.carried.files, on_file, compare_one),
    )


def _receipt_beside(folder: Path) -> CellReceipt | None:
    """The box's; one that cannot be read vouches for nothing, as one that is not there."""
    if paths.has_symlink(folder, paths.RECEIPT):
        return None
    try:
        return receipt.read_cell(folder / paths.RECEIPT)
    except (OSError, DamagedError):
        return None


def compare(
    folder: Path,
    files: Iterable[FileRecord],
    on_file: OnFile,
    compare_one: CompareOne = manifest.compare_one,
) -> tuple[manifest.Difference, ...]:
    """Each of these that is not in `folder` as its manifest says."""
    differences = []
    for file in files:
        differences.append(compare_one(folder, file))
        on_file(file.size_bytes)
    return tuple(difference for difference in differences if difference)


def _refuse_same_file(here: Path, there: Path) -> None:
    """A bind mount or hard link shows the tier's own file here: that is no copy of it."""
    if there.exists() and here.samefile(there):
        raise DamagedError(
            _("{here}: is the file on the durable tier itself, not a copy", here=here)
        )


def size_bytes(run: OpenRun, cell: str) -> int:
    """What is to be hashed of the laptop's copy; 0 where that cannot be told."""
    try:
        return manifest.read_manifest(run.results.manifest(cell)).size_bytes
    except (OSError, DamagedError):
        return 0  # said by `look`
