"""How far the artifacts of a cell were looked into, in a few words for a table."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared.files.receipt import BYTES, Finding


def how_checked(findings: Sequence[Finding]) -> str:
    """Such as `2 loaded, 1 bytes only, 3 gaps`; '' where nothing was looked at."""
    bytes_only = sum(finding.kind == BYTES for finding in findings)
    counts = {
        "loaded": len(findings) - bytes_only,
        "bytes only": bytes_only,
        "in part": sum("unlooked" in finding.facts for finding in findings),
        "gaps": sum(finding.facts.get("gaps", 0) for finding in findings),
    }
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)
