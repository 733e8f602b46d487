"""One measured line: a value with its unit, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`peer` is the other one's value in the same unit, or the limit that we set ourselves."""

    what: str
    value: float
    unit: str
    peer: float | None = None
    peer_name: str = ""

    @property
    def fields(self) -> tuple[str, str, str, str]:
        if self.peer is None:
            return self.what, f"{self.value:.3g} {self.unit}", "", ""
        beside = f"{self.peer:.3g} {self.unit} ({self.peer_name})"
        return self.what, f"{self.value:.3g} {self.unit}", beside, f"{self.value / self.peer:.2f}"
