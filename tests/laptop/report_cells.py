"""Cells of a report that tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.laptop.view.report import run_report
from boxcar.laptop.view.report.groups import ReportCell
from boxcar.laptop.view.report.run_report import Asked, Report
from boxcar.shared.files.manifest import Gpu, TrainedOn

DIGEST = "ab" * 32


def cell(name: str, seed: int | None, value: float | None, **own: Any) -> ReportCell:
    """With the number `dice`; `own` are settings, and `lack`, `note`, `price`, `doubt`, `task`, and
    `gpus`: the names of those that trained it.
    """
    gpus, on = own.pop("gpus", None), None
    if gpus is not None:
        on = TrainedOn(tuple(Gpu(name, f"GPU-{at}") for at, name in enumerate(gpus)), "580.1", 2)
    price, doubt = own.pop("price", ""), own.pop("doubt", "")
    lack, note, task = own.pop("lack", ""), own.pop("note", None), own.pop("task", "seg")
    seeds = {} if seed is None else {"seed": str(seed)}
    return ReportCell(
        run="r",
        name=name if seed is None else f"{name}_seed{seed}",
        task=task,
        settings={**own, **seeds},
        numbers={} if lack else {"dice": value},
        notes={"dice": note} if note else {},
        lack=lack,
        seconds=3600.0,
        ranks=2,
        attempts=1,
        price=price,
        doubt=doubt,
        trained_on=on,
    )


def ablation() -> list[ReportCell]:
    """A baseline, and one key changed: three seeds each. Two keys changed: one of three failed."""
    return [
        *(cell("baseline", seed, value, skip="true") for seed, value in enumerate([0.9, 0.8, 0.7])),
        *(cell("no_skip", seed, value, skip="false") for seed, value in enumerate([0.5, 0.6, 0.7])),
        *(cell("small", seed, 0.4, skip="false", width="8") for seed in (0, 1)),
        cell("small", 2, None, skip="false", width="8", lack="failed (M2)"),
    ]


def made(
    cells: Sequence[ReportCell], best: Mapping[str, str] | None = None, **asked: Any
) -> Report:
    """`best`: of the numbers that the job names."""
    return run_report.report_of_cells(Asked(("r",), **asked), {"r": DIGEST}, cells, best or {})
