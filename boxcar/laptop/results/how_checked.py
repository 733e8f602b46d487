"""How far the artifacts of a cell were looked into, in a few words for a table."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared.catalogue.sentence import Sentence, chained
from boxcar.shared.files.receipt import BYTES, LOADED_ON, Finding


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
        _counted("loaded", len(looked) - len(trusted) - len(hashed)),
        _counted("hashed", len(hashed), where=_where(hashed)),
        _counted("trusted", len(trusted), where=_where(trusted)),
        _counted("bad", len(findings) - len(good)),
        _counted("bytes_only", bytes_only),
        _counted("in_part", sum("unlooked" in finding.facts for finding in good)),
        _counted("gaps", sum(finding.facts.get("gaps", 0) for finding in findings)),
    )
    return chained("good_run.and", [sentence for sentence in counts if sentence])


def _counted(what: str, count: int, **fields: str) -> Sentence | None:
    return Sentence(f"good_run.n_{what}", n=count, **fields) if count else None


def _where(findings: Sequence[Finding]) -> str:
    boxes = sorted({found.facts[LOADED_ON] for found in findings if LOADED_ON in found.facts})
    return Sentence("good_run.loaded_on", boxes=", ".join(boxes)) if boxes else ""
