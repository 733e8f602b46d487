"""What a number of a run means, by its receipt: one name for two numbers is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import RunReceipt

# In a run's receipt: the job's `metrics` of the time.
KEY = "metrics"


def shared_definitions(receipts: Mapping[str, RunReceipt]) -> list[str]:
    """The names that the jobs gave, in their order. Raises InputError for one that has two
    definitions.
    """
    found: dict[str, tuple[str, Any]] = {}
    for run, receipt in receipts.items():
        for metric in _of(receipt):
            name = str(metric.get("name"))
            other, definition = found.setdefault(name, (run, metric))
            if definition != metric:
                raise InputError(
                    f"{name} is not the same number in {other} and {run} ({_said(definition)}; "
                    f"{_said(metric)}): they cannot stand in one table"
                )
    return list(found)


def _of(receipt: RunReceipt) -> list[dict[str, Any]]:
    """Of a receipt that was written before they stood in it, none."""
    found = receipt.extra.get(KEY)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def definitions_of_receipt(receipt: RunReceipt) -> tuple[Metric, ...]:
    """As the numbers were taken, to take their series likewise. Raises DamagedError."""
    return tuple(codec.decode(Metric, each, "the receipt's metrics") for each in _of(receipt))


def _said(metric: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in metric.items() if key != "name" and value)
