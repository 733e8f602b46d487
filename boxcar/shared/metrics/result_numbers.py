"""The numbers that a receipt proves of a cell: one function says them, for box and laptop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from boxcar.shared.files.receipt import Finding, Number
from boxcar.shared.metrics import measure

# What a training was given and what a library says of its own files: no result has such a name.
_GIVEN = re.compile(
    r"(.*[._-])?(config(uration)?|cfg|conf|args|arguments|(hyper[_-]?|h)?param(eter)?s|options?|opts?"
    r"|flags|settings)\.json|(tokenizer|vocab|(added|special)_tokens).*\.json"
    r"|model_index\.json|.+\.index\.json",
    re.IGNORECASE,
)
# Where results are, the surest name first.
_RESULTS = (
    re.compile(r"all_results\.json"),
    re.compile(r"(.*[._-])?(metrics|results?|scores?)\.json", re.IGNORECASE),
    re.compile(r"(.*[._-])?eval.*\.json", re.IGNORECASE),
    re.compile(r"trainer_state\.json"),
)


def of_result(metrics: Sequence[Number], findings: Iterable[Finding]) -> dict[str, Any]:
    """Those that the job names, in its order, before those that the cell's JSON artifacts hold."""
    found: dict[str, Any] = measure.of_named(metrics)
    for finding in sorted(filter(_may_be_a_result, findings), key=_place):
        numbers = finding.facts.get("numbers", {}).items()
        found |= {k: v for k, v in numbers if k not in found and isinstance(v, (int, float))}
    return found


def _may_be_a_result(finding: Finding) -> bool:
    return not _GIVEN.fullmatch(_name(finding))


def _place(finding: Finding) -> int:
    name = _name(finding)
    fits = (at for at, pattern in enumerate(_RESULTS) if pattern.fullmatch(name))
    return next(fits, len(_RESULTS))


def _name(finding: Finding) -> str:
    return finding.path.rpartition("/")[2]
