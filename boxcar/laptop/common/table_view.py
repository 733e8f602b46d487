"""A table before it is drawn."""

from __future__ import annotations

from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class TableView:
    """What stands in a table, as values: whoever shows it spells them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
