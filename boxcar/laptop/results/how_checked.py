"""How far the artifacts of a cell were looked into, in a few words for a table."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared.files.receipt import BYTES, LOADED_ON, Finding
from boxcar.shared.message import counted


def how_checked(findings: Sequence[Finding]) -> str:
    """Such as `2 loaded, 1 trusted (loaded on box-a), 1 bad, 1 bytes only, 3 gaps`, or `2 hashed
    (loaded on box-a)`; '' where nothing was looked at.
    """
    good = [finding for finding in findings if finding.is_good]
    bytes_only = sum(finding.kind == BYTES for finding in good)
    hashed = [finding for finding in good if finding.is_hashed]
    trusted = [finding for finding in good if finding.is_trusted and not finding.is_hashed]
    counts = {
        "loaded": len(good) - bytes_only - len(trusted) - len(hashed),
        f"hashed{_where(hashed)}": len(hashed),
        f"trusted{_where(trusted)}": len(trusted),
        "bad": len(findings) - len(good),
        "bytes only": bytes_only,
        "in part": sum("unlooked" in finding.facts for finding in good),
    }
    words = [f"{count} {word}" for word, count in counts.items() if count]
    gaps = sum(finding.facts.get("gaps", 0) for finding in findings)
    return ", ".join([*words, counted(gaps, "gap")] if gaps else words)


def _where(findings: Sequence[Finding]) -> str:
    boxes = sorted({found.facts[LOADED_ON] for found in findings if LOADED_ON in found.facts})
    return f" (loaded on {', '.join(boxes)})" if boxes else ""
