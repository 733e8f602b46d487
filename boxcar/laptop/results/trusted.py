"""What the laptop says of a file that it does not load: a trusted one, or any without torch.

What is trusted is never unpickled here: a rented machine wrote it. Its bytes are proven by the
manifest like any other's, the names in it are listed, and whether it loads says the receipt of its
box, where the code that wrote it has just run. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from boxcar.shared.files.manifest import Manifest
from boxcar.shared.files.receipt import LOADED_ON, CellReceipt, Finding


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
        why = "there is no torch here" if finding.is_hashed else "load: trusted"
        problem = (
            f"is loaded on {box} alone ({why}), and no receipt of that box for these very bytes "
            "lies here"
        )
        return replace(finding, problems=(problem,), facts=facts)
    facts = {**found.facts, **facts, LOADED_ON: box}
    return replace(finding, kind=found.kind, problems=found.problems, facts=facts)
