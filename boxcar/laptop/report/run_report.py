"""A report: its tables, the receipts that it stands on, and what was asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.report import groups, table
from boxcar.laptop.report.groups import Group, ReportCell
from boxcar.laptop.report.table import Table
from boxcar.shared.record import dataclass

METRICS_SHOWN = 2


@dataclass(frozen=True)
class Asked:
    """What a person asked for; it stands in each export, so that a check can ask for the same."""

    runs: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    baseline: str = ""
    seed_key: str = ""
    is_incomplete_shown: bool = False


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
    asked: Asked, receipts: Mapping[str, str], cells: Sequence[ReportCell], named: Sequence[str]
) -> Report:
    """`named`: the numbers that the job names, which are shown where the person asks for none."""
    found = groups.group_cells(cells, asked.seed_key)
    metrics = table.metrics_of(found, asked.metrics or named, METRICS_SHOWN)
    shown = table.of_groups(found, metrics, asked.baseline)
    return Report(asked, receipts, tuple(found), tuple(shown))
