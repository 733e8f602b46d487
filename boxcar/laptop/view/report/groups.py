"""Cells that differ in nothing but their seed are one group. Pure.

What a cell was told decides, never its name.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import field

from boxcar.laptop.common import units
from boxcar.laptop.view.report.settings import Value
from boxcar.shared.files.manifest import TrainedOn
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Mean, spread, and the interval of a difference. Pure.
#
# The interval is Welch's: two groups, neither of the same size nor of the same variance.


# Of fewer seeds an interval would say nothing.
LEAST = 3
# Student's t for 95 %, by degrees of freedom; a standard table, rounded to three digits.
_T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160),
    *(2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056),
    *(2.052, 2.048, 2.045, 2.042),
)


@dataclass(frozen=True)
class Spread:
    """Of `n` finite values; `std` is that of a sample, None of fewer than two."""

    n: int
    mean: float
    std: float | None


@dataclass(frozen=True)
class Difference:
    """Of two means; `half_width` of its 95 % interval, None where a side has fewer than LEAST."""

    mean: float
    half_width: float | None


def spread_of(values: Sequence[float]) -> Spread | None:
    """None of nothing. Raises ValueError for a value that is not finite: it is never averaged."""
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        raise ValueError(_("expected finite values, found {values}", values=list(values)))
    std = statistics.stdev(values) if len(values) > 1 else None
    return Spread(len(values), statistics.fmean(values), std)


def difference_of(one: Spread, base: Spread) -> Difference:
    return Difference(one.mean - base.mean, _half_width(one, base))


def _half_width(one: Spread, base: Spread) -> float | None:
    if min(one.n, base.n) < LEAST or one.std is None or base.std is None:
        return None
    parts = [(side.std or 0.0) ** 2 / side.n for side in (one, base)]
    if not sum(parts):
        return 0.0
    below = sum(p**2 / (s.n - 1) for p, s in zip(parts, (one, base), strict=True))
    return t_95(sum(parts) ** 2 / below) * math.sqrt(sum(parts))


def t_95(degrees: float) -> float:
    """Rounded down to the next row of the table, so an interval is never too narrow."""
    row = max(1, math.floor(degrees + 1e-9))
    if row <= len(_T_95):
        return _T_95[row - 1]
    return next((t for least, t in ((120, 1.980), (60, 2.000), (40, 2.021)) if row >= least), 2.042)


SEED = "seed"
HOUR_S = 3600.0


@dataclass(frozen=True)
class ReportCell:
    """One cell of a report. `numbers` is empty unless `verify` has proven it; else `lack` says why.
    A number that is not known, or not finite, is None, and `notes` say why.

    `doubt` is what marks a result that is proven to be what was left, and not to be whole.
    `values` are the settings in their own types.
    `seconds` is the time of all its attempts, `ranks` how many processes it ran in, and `price`
    that of an hour of its box, of which `share` was its own. `trained_on` is of its manifest, where
    that says it.
    """

    run: str
    name: str
    task: str
    settings: Mapping[str, str]
    numbers: Mapping[str, float | None]
    notes: Mapping[str, str]
    lack: str = ""
    seconds: float = 0.0
    ranks: int = 1
    attempts: int = 0
    price: str = ""
    share: float = 1.0
    doubt: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    trained_on: TrainedOn | None = None

    @property
    def gpus(self) -> str:
        """How many of which model, as `2 x NVIDIA A100`; '' where nobody knows."""
        names = sorted(gpu.name for gpu in self.trained_on.gpus) if self.trained_on else []
        return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))

    @property
    def is_proven(self) -> bool:
        return not self.lack

    @property
    def gpu_hours(self) -> float:
        return self.seconds * self.ranks / HOUR_S


@dataclass(frozen=True)
class Group:
    """The seeds of one setting, in the order of the queues."""

    name: str
    task: str
    settings: Mapping[str, str]
    seeds: tuple[str, ...]
    cells: tuple[ReportCell, ...]

    def lacks(self, metric: str) -> list[str]:
        """Why this number of the group is not whole: one sentence for each cell that has none."""
        found = zip(self.seeds, self.cells, strict=True)
        return [_of_seed(seed, why) for seed, cell in found if (why := _lack(cell, metric))]

    @property
    def doubts(self) -> list[str]:
        """What marks its proven cells: one sentence for each that is marked."""
        found = zip(self.seeds, self.cells, strict=True)
        return [_of_seed(s, cell.doubt) for s, cell in found if cell.doubt and cell.is_proven]

    def values(self, metric: str) -> list[float]:
        """Of the proven cells, those that are finite."""
        found = (cell.numbers[metric] for cell in self.cells if not _lack(cell, metric))
        return [value for value in found if value is not None]

    def spread(self, metric: str) -> Spread | None:
        return spread_of(self.values(metric))

    @property
    def gpus(self) -> tuple[str, ...]:
        """On what its proven cells were trained, each once; without those that nobody knows of."""
        found = sorted({cell.gpus for cell in self.cells if cell.is_proven})
        return tuple(filter(None, found))

    @property
    def gpu_hours(self) -> float:
        return sum(cell.gpu_hours for cell in self.cells)

    @property
    def cost(self) -> dict[str, float]:
        """By currency, of the cells whose box has a price."""
        sums: dict[str, float] = {}
        for cell in self.cells:
            if cell.price:
                amount, currency = units.price_of_text(cell.price)
                spent = amount * cell.share * cell.seconds / HOUR_S
                sums[currency] = sums.get(currency, 0.0) + spent
        return sums

    @property
    def attempts(self) -> int:
        return sum(cell.attempts for cell in self.cells)


def group_cells(cells: Sequence[ReportCell], seed_key: str = "") -> list[Group]:
    """In the order of the cells. `seed_key`: of the job, else every key whose last part is seed."""
    grouped: dict[tuple[tuple[str, str], ...], list[tuple[str, ReportCell]]] = {}
    for cell in cells:
        seeds = {key: v for key, v in cell.settings.items() if _is_seed(key, seed_key)}
        rest = tuple(sorted((key, v) for key, v in cell.settings.items() if key not in seeds))
        grouped.setdefault((("", cell.run), *rest), []).append((", ".join(seeds.values()), cell))
    return [_group(pairs, seed_key) for pairs in grouped.values()]


def _group(pairs: Sequence[tuple[str, ReportCell]], seed_key: str) -> Group:
    seeds, cells = zip(*pairs, strict=True)
    first = cells[0]
    settings = {key: v for key, v in first.settings.items() if not _is_seed(key, seed_key)}
    return Group(_name(pairs), first.task, settings, seeds, cells)


def _is_seed(key: str, seed_key: str) -> bool:
    return key == seed_key if seed_key else key.rpartition(".")[2] == SEED


def _name(pairs: Sequence[tuple[str, ReportCell]]) -> str:
    """What its cells are called without their seed, where that is one name; else the first's."""
    bare = {_without(cell.name, seed) for seed, cell in pairs}
    return bare.pop() if len(bare) == 1 and len(pairs) > 1 else pairs[0][1].name


def _without(name: str, seed: str) -> str:
    return name.removesuffix(f"_seed{seed}") if seed else name


def _lack(cell: ReportCell, metric: str) -> str:
    if cell.lack or cell.numbers.get(metric) is not None:
        return cell.lack
    note = cell.notes.get(metric)
    if note is None:
        return _("has no {metric}", metric=metric)
    return _("has no {metric}: {note}", metric=metric, note=note)


def _of_seed(seed: str, why: str) -> str:
    return _("seed {seed} {why}", seed=seed, why=why) if seed else why
