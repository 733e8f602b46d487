"""What the laptop says of a file of `load: trusted`, which a rented machine wrote.

It is never unpickled here. Its bytes are proven by the manifest like any other's, the names in it
are listed, and whether it loads says the receipt of its box, where the code that wrote it has just
run. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from boxcar.shared.files.manifest import Manifest
from boxcar.shared.files.plan import TRUSTED
from boxcar.shared.files.receipt import LOADED_ON, CellReceipt, Finding


def vouched(
    findings: Iterable[Finding], made: Manifest, sha256: str, receipt: CellReceipt | None
) -> list[Finding]:
    """The findings; of each file that was only read for its names, what its box says.

    `sha256` is that of the manifest `made`, `receipt` the box's that lies beside it here.
    """
    by_path = _of_this(made, sha256, receipt)
    return [
        _by_its_box(finding, made.box, by_path.get(finding.path)) if finding.is_trusted else finding
        for finding in findings
    ]


def lacks_a_receipt(finding: Finding) -> bool:
    return finding.is_trusted and LOADED_ON not in finding.facts


def _of_this(made: Manifest, sha256: str, receipt: CellReceipt | None) -> dict[str, Finding]:
    """What the box found in exactly these bytes, as far as it has loaded them as trusted."""
    if receipt is None or receipt.manifest_sha256 != sha256:
        return {}
    of_this = (receipt.run, receipt.cell, receipt.attempt) == (made.run, made.cell, made.attempt)
    return {found.path: found for found in receipt.findings if of_this and found.load == TRUSTED}


def _by_its_box(finding: Finding, box: str, found: Finding | None) -> Finding:
    facts = {name: fact for name, fact in finding.facts.items() if name != LOADED_ON}
    if found is None:
        problem = (
            f"is loaded on {box} alone (load: trusted), and no receipt of that box for these very "
            "bytes lies here"
        )
        return replace(finding, problems=(problem,), facts=facts)
    facts = {**found.facts, **facts, LOADED_ON: box}
    return replace(finding, kind=found.kind, problems=found.problems, facts=facts)
