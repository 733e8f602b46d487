"""One proven cell as a tracker gets it: what it was told, its curves, its numbers, and its proof.

Pure. The same result gives the same content, whatever else is in the run by then.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.common.units import distinct
from boxcar.laptop.report.settings import Value
from boxcar.shared.disk import digest
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

_ID_DIGITS = 16
# Another one exports everything again: what is written of a cell has changed.
_KIND = 2


@dataclass(frozen=True)
class Point:
    """What a cell reported at one step; `at` is in seconds since 1970. A value may be NaN."""

    step: int
    at: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class ExportedCell:
    """`config` is flat. `began_s` and `ended_s` are seconds since 1970, of the last attempt.

    `manifest` is the digest that the receipt proves, `receipt` that of the receipt itself: it
    changes with every other cell of the run, and is no part of the content.
    """

    run: str
    name: str
    group: str
    seed: str
    box: str
    config: Mapping[str, Value]
    numbers: Mapping[str, float]
    points: tuple[Point, ...]
    began_s: float
    ended_s: float
    manifest: str
    receipt: str

    @property
    def key(self) -> str:
        return f"{self.run}/{self.name}"

    @property
    def id(self) -> str:
        return id_of(self.key)

    @property
    def curves(self) -> list[str]:
        """The names of its curves."""
        return list(dict.fromkeys(key for point in self.points for key in point.values))

    @property
    def told(self) -> dict[str, Value]:
        """What a person compares it by: its config, and what Boxcar says of it under names that are
        free.
        """
        ours = {**self.tags, **self.proof}
        return {**self.config, **dict(zip(distinct(ours, self.config), ours.values(), strict=True))}

    @property
    def tags(self) -> dict[str, str]:
        seed = {"seed": self.seed} if self.seed else {}
        return {"run": self.run, "group": self.group, **seed}

    @property
    def finals(self) -> dict[str, float]:
        """Under names of their own: a curve may have the same one, and another meaning."""
        names = distinct([f"final/{name}" for name in self.numbers], self.curves)
        return dict(zip(names, self.numbers.values(), strict=True))

    @property
    def proof(self) -> dict[str, str]:
        """Where it comes from, for whoever finds it in a tracker."""
        return {
            "boxcar.id": self.id,
            "boxcar.box": self.box,
            "boxcar.manifest": self.manifest,
            "boxcar.receipt": self.receipt,
        }

    @property
    def last_step(self) -> int:
        return self.points[-1].step if self.points else 0

    @property
    def content(self) -> str:
        """The digest of all that a tracker gets, but for the receipt."""
        fields = {k: v for k, v in codec.encode(self).items() if k != "receipt"}
        return digest.of_json(codec.finite({"kind": _KIND, **fields}))


def id_of(key: str) -> str:
    """Of a cell, by run/cell: the same for ever, also once it was trained again."""
    return digest.of_bytes(key.encode())[:_ID_DIGITS]
