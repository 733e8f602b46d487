"""The numbers that a receipt proves of a cell: one function says them, for box and laptop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.files.receipt import Finding, Number
from boxcar.shared.metrics import measure, result_files

# In the facts of a finding; and beside it, in those of a file that is read row by row.
NUMBERS, ROWS = "numbers", "rows"
_MOST, _LONGEST = 20, 200


def of_result(metrics: Sequence[Number], findings: Iterable[Finding]) -> dict[str, Any]:
    """Those that the job names, in its order, before those of the cell's files with results."""
    found: dict[str, Any] = measure.of_named(metrics)
    for finding in sorted(filter(_is_of_results, findings), key=_place):
        numbers = finding.facts.get(NUMBERS, {}).items()
        found |= {k: v for k, v in numbers if k not in found and isinstance(v, (int, float))}
    return found


def _is_of_results(finding: Finding) -> bool:
    """Older boxes took the numbers of every JSON document, a config's too."""
    path = finding.path
    if result_files.is_of_events(path):
        return True
    is_by_shape = ROWS in finding.facts or result_files.counts(finding.facts.get(NUMBERS, ()))
    return result_files.may_be_one(path) and (result_files.is_named_so(path) or is_by_shape)


def _place(finding: Finding) -> int:
    return result_files.place(finding.path)


def last_of_file(path: Path) -> dict[str, Any]:
    """Facts of a published file: the last of each of its numbers, where it is one with results and
    that is finite.
    """
    with path.open("rb") as file:
        series = result_files.series_of_file(path.name, file)
    last = {key[:_LONGEST]: points[-1][2] for key, points in series.items()}
    finite = {key: value for key, value in last.items() if math.isfinite(value)}
    return {NUMBERS: dict(list(finite.items())[:_MOST])} if finite else {}
