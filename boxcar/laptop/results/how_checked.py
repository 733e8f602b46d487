"""How far the artifacts of a cell were looked into, in a few words for a table."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared.files.receipt import BYTES, LOADED_ON, Finding
from boxcar.shared.message import counted


def how_checked(findings: Sequence[Finding]) -> str:
    """Such as `2 loaded, 1 trusted (loaded on box-a), 1 bad, 1 bytes only, 3 gaps`; '' where
    nothing was looked at.
    """
    good = [finding for finding in findings if finding.is_good]
    bytes_only = sum(finding.kind == BYTES for finding in good)
    trusted = [finding for finding in good if finding.is_trusted]
    boxes = sorted({finding.facts[LOADED_ON] for finding in trusted if LOADED_ON in finding.facts})
    where = f" (loaded on {', '.join(boxes)})" if boxes else ""
    counts = {
        "loaded": len(good) - bytes_only - len(trusted),
        f"trusted{where}": len(trusted),
        "bad": len(findings) - len(good),
        "bytes only": bytes_only,
        "in part": sum("unlooked" in finding.facts for finding in good),
    }
    words = [f"{count} {word}" for word, count in counts.items() if count]
    gaps = sum(finding.facts.get("gaps", 0) for finding in findings)
    return ", ".join([*words, counted(gaps, "gap")] if gaps else words)
