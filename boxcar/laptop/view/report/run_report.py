"""A report: its tables, the receipts that it stands on, and what was asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from boxcar.laptop.view.report import groups, table
from boxcar.laptop.view.report.groups import Group, ReportCell
from boxcar.laptop.view.report.table import Table
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.files.codec import LATER
from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import RunReceipt
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# What a number of a run means, by its receipt: one name for two numbers is refused.


# In a run's receipt: the job's `metrics` of the time.
KEY = "metrics"


def shared_definitions(receipts: Mapping[str, RunReceipt]) -> dict[str, str]:
    """The names that the jobs gave, in their order, with what is best of each: min, max or ''.
    Raises InputError for one that has two definitions.
    """
    found: dict[str, tuple[str, Any]] = {}
    for run, receipt in receipts.items():
        for metric in _of(receipt):
            name = str(metric.get("name"))
            other, definition = found.setdefault(name, (run, metric))
            if definition != metric:
                raise InputError(
                    _(
                        "{name} is defined differently in {other} and {run} ({definition}; "
                        "{metric}), so they cannot be in one table",
                        name=name,
                        other=other,
                        run=run,
                        definition=_said(definition),
                        metric=_said(metric),
                    )
                )
    return {name: str(metric.get("best") or "") for name, (_run, metric) in found.items()}


def _of(receipt: RunReceipt) -> list[dict[str, Any]]:
    """Of a receipt that was written before they stood in it, none."""
    found = receipt.extra.get(KEY)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def definitions_of_receipt(receipt: RunReceipt) -> tuple[Metric, ...]:
    """As the numbers were taken, to take their series likewise. Raises DamagedError."""
    return tuple(codec.decode(Metric, each, "the receipt's metrics") for each in _of(receipt))


def _said(metric: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in metric.items() if key != "name" and value)


METRICS_SHOWN = 2


@dataclass(frozen=True)
class Asked:
    """What a person asked for; it stands in each export, so that a check can ask for the same.
    `best`: of the numbers of which the job's `report` says it.
    """

    runs: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    baseline: str = ""
    seed_key: str = ""
    is_incomplete_shown: bool = False
    sort: str = field(default="", metadata=LATER)
    best: Mapping[str, str] = field(default_factory=dict, metadata=LATER)


@dataclass(frozen=True)
class Report:
    """`receipts`: the digest of each run's, by its name."""

    asked: Asked
    receipts: Mapping[str, str]
    groups: tuple[Group, ...]
    tables: tuple[Table, ...]

    @property
    def is_complete(self) -> bool:
        return all(each.is_complete for each in self.tables)

    @property
    def digest(self) -> str:
        """Of all receipts, as it stands in an export."""
        return "+".join(self.receipts.values())


def report_of_cells(
    asked: Asked, receipts: Mapping[str, str], cells: Sequence[ReportCell], named: Mapping[str, str]
) -> Report:
    """`named`: the numbers that the job names, which are shown where the person asks for none, and
    what is best of each. Raises InputError for a column to sort by that is not there.
    """
    found = groups.group_cells(cells, asked.seed_key)
    metrics = table.metrics_of(found, asked.metrics or [*named], METRICS_SHOWN)
    bests = {**named, **asked.best}
    shown = table.of_groups(found, {name: bests.get(name, "") for name in metrics}, asked.baseline)
    return Report(asked, receipts, tuple(found), tuple(table.sort_rows(shown, asked.sort)))
