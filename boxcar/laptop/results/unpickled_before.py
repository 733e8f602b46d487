"""Files that an earlier `verify` unpickled, because a person had allowed each by name.

What runs code when it is loaded is run once: where the result is the same byte by byte, the finding
of then is the finding of now. Only the laptop's own receipt says so, never a box.
"""

from __future__ import annotations

from boxcar.laptop.results.judge import CellFacts
from boxcar.shared.files.receipt import CellVerdict, Finding


def kept(facts: CellFacts, earlier: CellVerdict) -> dict[str, tuple[Finding, str]]:
    """The finding of each such file, as `<cell>/<path>`, and when it was unpickled."""
    if not facts.is_whole or facts.manifest_sha256 != earlier.manifest_sha256:
        return {}
    return {
        f"{facts.cell}/{finding.path}": (finding, earlier.unpickled[finding.path])
        for finding in earlier.findings
        if finding.is_good and finding.path in earlier.unpickled
    }
