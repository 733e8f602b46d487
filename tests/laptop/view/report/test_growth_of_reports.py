"""A report costs the same for each further cell, whatever they share: counted in lines run."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from report_cells import cell, made

from boxcar.laptop.view.report import as_text, report_page
from boxcar.laptop.view.report.groups import ReportCell

FEW, MORE, MANY = 10, 20, 80
# What a chart draws has a most: further cells may cost less.
MOST = 1.02


def _of_a_task_each(count: int) -> list[ReportCell]:
    return [cell(f"c{at}", None, 0.5 + at, task=f"t{at}", lr=str(at)) for at in range(count)]


def _with_a_number_each(count: int) -> list[ReportCell]:
    cells = enumerate(_of_a_task_each(count))
    return [replace(one, numbers={**one.numbers, f"own{at}": 1.0}) for at, one in cells]


def _half_of_them_seeds_of_the_baseline(count: int) -> list[ReportCell]:
    seeds = [cell("baseline", at, 0.5 + at, lr="0") for at in range(count // 2)]
    return [*seeds, *(cell("x", None, 0.7, lr=str(at)) for at in range(1, count // 2 + 1))]


def _lines(cells: list[ReportCell]) -> int:
    counted = itertools.count()

    def hook(frame: Any, event: str, argument: Any) -> Any:
        next(counted)
        return hook

    before = sys.gettrace()
    sys.settrace(hook)
    try:
        report = made(cells)
        as_text.markdown(report)
        report_page.page_of_report(report, {})
    finally:
        sys.settrace(before)
    return next(counted)


@pytest.mark.parametrize(
    "cells", [_of_a_task_each, _with_a_number_each, _half_of_them_seeds_of_the_baseline]
)
def test_a_report_grows_with_its_cells_and_no_faster(
    cells: Callable[[int], list[ReportCell]],
) -> None:
    _lines(cells(FEW))  # what only the first one does
    few, more, many = (_lines(cells(count)) for count in (FEW, MORE, MANY))
    of_few, of_many = (more - few) / (MORE - FEW), (many - more) / (MANY - MORE)
    assert of_many < of_few * MOST, (of_few, of_many)
