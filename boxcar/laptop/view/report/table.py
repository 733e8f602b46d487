"""The table of a report: one for each task, a row for each group, as text. Pure.

An incomplete group stands in brackets, and one with a result in doubt. What is not proven never
enters a number.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.common.near import no_choice
from boxcar.laptop.view.report import groups, settings
from boxcar.laptop.view.report.groups import Difference, Group, Spread
from boxcar.shared.errors import InputError, some
from boxcar.shared.metrics.records import NOT_METRICS
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

BASELINE = "baseline"
_CLEAN = 1  # keys that one ablation changes
_EXAMPLE = (
    r"metrics: {loss: {log: 'val loss (\S+)', best: min}, "
    "acc: {csv: metrics.csv, column: acc, best: max}}"
)


@dataclass(frozen=True)
class Row:
    """One group. `numbers`, `deltas` and `bests` are for each metric; `notes` stand below the
    table.
    """

    group: Group
    name: str
    n: str
    numbers: tuple[str, ...]
    deltas: tuple[str, ...]
    bests: tuple[bool, ...]
    changed: tuple[str, ...]
    hours: str
    cost: str
    attempts: int
    is_complete: bool
    is_baseline: bool
    has_other_gpus: bool
    notes: tuple[Sentence, ...]

    @property
    def is_clean(self) -> bool:
        """Whether its difference is that of one key."""
        return len(self.changed) <= _CLEAN


@dataclass(frozen=True)
class Table:
    """`bests`: of each metric what its job calls best: min, max, or '' where it says nothing."""

    task: str
    metrics: tuple[str, ...]
    bests: tuple[str, ...]
    baseline: str
    rows: tuple[Row, ...]

    @functools.cached_property
    def has_cost(self) -> bool:
        """Whether a person has typed what a box costs."""
        return any(row.cost for row in self.rows)

    @property
    def is_complete(self) -> bool:
        return all(row.is_complete for row in self.rows)

    @property
    def notes(self) -> list[Sentence]:
        """What stands below it: why numbers stand in brackets or are not there, and what `(!)`
        means.
        """
        found = [note for row in self.rows for note in row.notes]
        if not self.metrics and any(
            cell.is_proven for row in self.rows for cell in row.group.cells
        ):
            found.append(
                _(
                    "no number is known, so nothing can be compared. Say in job.yaml where one is, "
                    "such as {line}, then verify again. Files with curves come here as artifacts "
                    "or by collect",
                    line=_EXAMPLE,
                )
            )
        count = sum(not row.is_clean for row in self.rows)
        return (
            [
                *found,
                _(
                    "(!) {n} {n:group differs|groups differ} from the baseline in more than one "
                    "key: not a clean ablation",
                    n=count,
                ),
            ]
            if count
            else found
        )


@dataclass(frozen=True)
class _Baseline:
    """What all rows are compared with, worked out once: its seeds may be many, as the rows are."""

    group: Group
    spreads: Mapping[str, Spread | None]
    lacking: Collection[str]  # the metrics of which its number stands in brackets
    best: Mapping[str, float | None]
    directions: Mapping[str, str]


def of_groups(
    groups: Sequence[Group], metrics: Mapping[str, str], baseline: str = ""
) -> list[Table]:
    """One table for each task, in their order. `metrics`: with what is best of each; `baseline`
    names a group, or a cell of one.
    """
    tasks: dict[str, list[Group]] = {}
    for group in groups:
        tasks.setdefault(group.task, []).append(group)
    return [_table(found, metrics, baseline) for found in tasks.values()]


def metrics_of(groups: Sequence[Group], named: Sequence[str], most: int) -> list[str]:
    """Those that were named and some cell has; else the first that the cells have. What few cells
    of a task have is not chosen unasked: it would make all other groups incomplete.
    """
    known = dict.fromkeys(name for group in groups for cell in group.cells for name in cell.numbers)
    usual = _usual(groups).difference(NOT_METRICS)
    others = [name for name in known if name in usual]
    return [name for name in named if name in known] or others[:most]


def sort_rows(tables: Sequence[Table], column: str) -> list[Table]:
    """The tables that have this column by it, the best first where that is known; '' changes
    nothing. Raises InputError for one that no table has.
    """
    known = [*dict.fromkeys(m for table in tables for m in table.metrics), *_COLUMNS]
    if column and column not in known:
        raise InputError(no_choice("--sort", known, column))
    return [_sorted(table, column) if column else table for table in tables]


def _sorted(table: Table, column: str) -> Table:
    if column not in table.metrics:
        own = _COLUMNS.get(column)
        return replace(table, rows=tuple(sorted(table.rows, key=own))) if own else table
    sign = -1 if table.bests[table.metrics.index(column)] == "max" else 1
    spreads = [(row, row.group.spread(column)) for row in table.rows]
    has = sorted((sign * found.mean, at) for at, (_row, found) in enumerate(spreads) if found)
    without = [row for row, found in spreads if not found]
    return replace(table, rows=(*(table.rows[at] for _mean, at in has), *without))


# Beside the numbers, by the heads that a person sees.
_COLUMNS: Mapping[str, Callable[[Row], Any]] = {
    "cell": lambda row: row.name,
    "n": lambda row: int(row.n),
    "changed": lambda row: row.changed,
    "GPU-h": lambda row: row.group.gpu_hours,
    "cost": lambda row: sorted(row.group.cost.items()),
    "attempts": lambda row: row.attempts,
}


def _usual(groups: Sequence[Group]) -> set[str]:
    """Those that half of the proven cells of some task have."""
    has: Counter[tuple[str, str]] = Counter()
    proven: Counter[str] = Counter()
    for cell in (cell for group in groups for cell in group.cells if cell.is_proven):
        proven[cell.task] += 1
        has.update((cell.task, name) for name in cell.numbers)
    return {name for (task, name), count in has.items() if 2 * count >= proven[task]}


def _table(groups: Sequence[Group], metrics: Mapping[str, str], baseline: str) -> Table:
    own = {m: metrics.get(m, "") for m in metrics_of(groups, [*metrics], len(metrics))}
    base = _baseline(groups, baseline)
    lacking = {metric for metric in own if base.doubts or base.lacks(metric)}
    whole = [g for g in groups if not (g.doubts or any(map(g.lacks, own)))]
    best = {metric: _best(whole, metric, of) for metric, of in own.items()}
    against = _Baseline(base, {metric: base.spread(metric) for metric in own}, lacking, best, own)
    rows = tuple(_row(group, against, [*own]) for group in groups)
    return Table(groups[0].task, (*own,), (*own.values(),), base.name, rows)


def _best(whole: Sequence[Group], metric: str, best: str) -> float | None:
    """The mean that no other is better than, of groups that are whole; None of fewer than two."""
    means = [found.mean for group in whole if (found := group.spread(metric))]
    return (min if best == "min" else max)(means) if best and len(means) > 1 else None


def _baseline(groups: Sequence[Group], named: str) -> Group:
    """The one that was named; else the one with `baseline` in its name; else the first."""
    for group in groups:
        if named and named in (group.name, *(cell.name for cell in group.cells)):
            return group
    so_called = [group for group in groups if BASELINE in group.name.split("_")]
    return so_called[0] if len(so_called) == 1 else groups[0]


def _row(group: Group, base: _Baseline, metrics: Sequence[str]) -> Row:
    lacks = [sentence for metric in metrics for sentence in group.lacks(metric)]
    lacks = lacks if metrics else [cell.lack for cell in group.cells if cell.lack]
    is_base, whole = group is base.group, not (lacks or group.doubts)
    changed = () if is_base else tuple(settings.differences(group.settings, base.group.settings))
    gpus = sorted({*group.gpus, *base.group.gpus}) if group.gpus and base.group.gpus else group.gpus
    return Row(
        group=group,
        name=group.name,
        n=str(sum(cell.is_proven for cell in group.cells)),
        numbers=tuple(bracketed(_number(group, metric), whole) for metric in metrics),
        deltas=tuple(
            "-" if is_base else bracketed(_delta(group, base, m), whole and m not in base.lacking)
            for m in metrics
        ),
        bests=tuple(whole and _is_best(group.spread(m), base.best[m]) for m in metrics),
        changed=changed,
        hours=hours(group.gpu_hours),
        cost=" + ".join(f"{total:.2f} {currency}" for currency, total in group.cost.items()),
        attempts=group.attempts,
        is_complete=not lacks,
        is_baseline=is_base,
        has_other_gpus=len(gpus) > 1,
        notes=(
            *_notes(group, lacks, has_number=any(map(group.spread, metrics))),
            *_notes_on_gpus(group, base.group, gpus),
        ),
    )


def _notes_on_gpus(group: Group, base: Group, gpus: Sequence[str]) -> Iterator[Sentence]:
    """`gpus`: on what its cells and the baseline's were trained."""
    if len(gpus) < 2:
        return
    of: dict[str, Any] = {"group": group.name, "groups": 1, "gpus": "; ".join(group.gpus)}
    if len(group.gpus) > 1 or group is base:
        yield _(
            "(GPU) the cells of {group} were trained on different GPUs ({gpus}): compare neither "
            "their times nor the last digits of their numbers",
            **of,
        )
    else:
        yield _(
            "(GPU) {group} {groups:was|were} trained on {gpus}, the baseline on {base}: compare "
            "neither times nor the last digits of numbers",
            base="; ".join(base.gpus),
            **of,
        )


def _is_best(found: Spread | None, best: float | None) -> bool:
    return found is not None and found.mean == best


def _together(whys: Sequence[str]) -> str:
    """In each language, as a joined text would be English alone."""
    each = dict.fromkeys(whys)
    return functools.reduce(lambda one, other: _("{one}; {other}", one=one, other=other), each)


def _notes(group: Group, lacks: Sequence[str], *, has_number: bool) -> Iterator[Sentence]:
    """Each in words that fit several groups as well: see `fold_notes`."""
    of: dict[str, Any] = {"group": group.name, "groups": 1}
    if lacks and has_number:
        yield _(
            "{group} {groups:is|are} incomplete: {why}. {groups:Its|Their} numbers are in brackets",
            why=_together(lacks),
            **of,
        )
    elif lacks:
        yield _("{group} {groups:has|have} no number: {why}", why=_together(lacks), **of)
    if group.doubts and has_number:
        yield _(
            "{group} {groups:is|are} not certain: {why}. {groups:Its|Their} numbers are in "
            "brackets",
            why=_together(group.doubts),
            **of,
        )
    elif group.doubts:
        why = _together(group.doubts)
        yield _("{group} {groups:is|are} not certain: {why}", why=why, **of)
    for seed, count in Counter(group.seeds).items():
        if count > 1 and seed:
            yield _(
                "{group} {groups:has|have} {n} cells with seed {seed}: these are repetitions, so "
                "their spread is not the spread over seeds",
                n=count,
                seed=seed,
                **of,
            )
        elif count > 1:
            yield _(
                "{group} {groups:has|have} {n} identical cells without a seed: these are "
                "repetitions, so their spread is not the spread over seeds",
                n=count,
                **of,
            )


def fold_notes(notes: Sequence[Sentence], most: int) -> list[Sentence]:
    """What is the same of more than `most` groups is one note, which names so many of them."""
    alike: dict[object, list[Sentence]] = {}
    for note in notes:
        rest = [(key, value) for key, value in note.fields.items() if key != "group"]
        alike.setdefault((note.template, *rest), []).append(note)
    found: list[Sentence] = []
    for same in alike.values():
        names = some([str(note.fields.get("group")) for note in same], most)
        of_all = {"group": _("{n} groups ({names})", n=len(same), names=names), "groups": len(same)}
        first = same[0]
        folded = [Sentence(first.template, **first.fields | of_all)]
        found += folded if len(same) > most else same
    return found


def bracketed(text: str, is_whole: bool) -> str:
    if is_whole or text == "-":
        return text
    # In each language, as a text around it would be English alone.
    return _("({text})", text=text) if isinstance(text, Sentence) else f"({text})"


def _number(group: Group, metric: str) -> str:
    found = group.spread(metric)
    return mean_and_std(found) if found else "-"


def mean_and_std(found: Spread) -> str:
    """`0.894±0.004`: the spread in two digits, and the mean as far as the spread reaches."""
    if not found.std:
        return units.four_digits(found.mean)
    places = _places(found.std)
    return f"{found.mean:.{places}f}±{found.std:.{places}f}"


def _delta(group: Group, base: _Baseline, metric: str) -> str:
    one, other = group.spread(metric), base.spreads[metric]
    if one is None or other is None:
        return "-"
    found = groups.difference_of(one, other)
    width = "" if found.half_width is None else f"±{found.half_width:.{_delta_places(found)}f}"
    number = f"{found.mean:+.{_delta_places(found)}f}{width}"
    if not base.directions[metric] or abs(found.mean) <= (found.half_width or 0.0):
        return number
    is_better = (found.mean < 0) == (base.directions[metric] == "min")
    if is_better:
        return _("{number} better", number=number)
    return _("{number} worse", number=number)


def hours(number: float) -> str:
    """`6.00`, `0.013`: two digits at least."""
    return f"{number:.2f}" if number >= 0.1 or not number else f"{number:.2g}"


def _delta_places(found: Difference) -> int:
    return _places(found.half_width or abs(found.mean) or 1.0)


def _places(size: float) -> int:
    """How many places show two digits of this size."""
    return min(6, max(0, 1 - math.floor(math.log10(size))))
