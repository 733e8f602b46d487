"""The numbers that a receipt proves of a cell: one function says them, for tables and reports."""

from __future__ import annotations

from boxcar.shared.files.receipt import CellVerdict
from boxcar.shared.metrics import measure


def of_verdict(verdict: CellVerdict) -> dict[str, float | None]:
    """Those that the job names, before those that the cell's JSON artifacts hold."""
    numbers = measure.of_named(verdict.metrics)
    for finding in verdict.findings:
        found = finding.facts.get("numbers", {})
        numbers |= {
            name: float(value)
            for name, value in found.items()
            if name not in numbers and isinstance(value, (int, float))
        }
    return numbers
