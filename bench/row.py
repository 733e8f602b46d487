"""One measured line: a value with its unit, and what stands beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

COLUMNS = ("what", "value", "beside", "ratio", "to reach")


@dataclass(frozen=True)
class Row:
    """`peer` is the other one's value in the same unit, or the limit that we set ourselves.

    `lowest` and `peer_lowest` are the minima where `value` and `peer` are medians. `most_ratio` is
    the ratio to reach. `reason` says why there is no value.
    """

    what: str
    value: float
    unit: str
    peer: float | None = None
    peer_name: str = ""
    lowest: float | None = None
    peer_lowest: float | None = None
    most_ratio: float | None = None
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        return self.value / self.peer if self.peer else None

    @property
    def fields(self) -> tuple[str, str, str, str, str]:
        if self.reason:
            return self.what, "-", self.reason, "", ""
        reach = f"{self.most_ratio:.2f}" if self.most_ratio else ""
        value = f"{_number(self.value, self.lowest)} {self.unit}"
        if self.peer is None:
            return self.what, value, "", "", reach
        beside = f"{_number(self.peer, self.peer_lowest)} {self.unit} ({self.peer_name})"
        return self.what, value, beside, f"{self.value / self.peer:.2f}" if self.peer else "", reach

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def no_value(what: str, reason: str) -> Row:
    """A line for what could not be measured here."""
    return Row(what, 0.0, "", reason=reason)


def of_samples(
    what: str,
    took_s: Mapping[str, Sequence[float]],
    peer: str,
    most_ratio: float | None = None,
) -> Row:
    """The medians of "ours" and of a peer beside each other, in seconds, with the minima."""
    ours, peers = took_s["ours"], took_s[peer]
    return Row(
        what,
        statistics.median(ours),
        "s",
        statistics.median(peers),
        peer,
        min(ours),
        min(peers),
        most_ratio,
    )


def of_document(found: dict[str, Any]) -> Row:
    return Row(**{name: value for name, value in found.items() if name != "ratio"})


def _number(value: float, lowest: float | None) -> str:
    return f"{value:.3g}" if lowest is None else f"{value:.3g} (min {lowest:.3g})"
