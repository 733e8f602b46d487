"""A report as one HTML file: tables, notes, curves, scatters. It asks the network for nothing, and
its only script sorts tables.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from boxcar.laptop.project.project import Project
from boxcar.laptop.view.report import as_text, cell_series, chart, gather
from boxcar.laptop.view.report.chart import Curve, Dot, Points
from boxcar.laptop.view.report.run_report import Report
from boxcar.laptop.view.report.table import Row, Table, fold_notes
from boxcar.shared.disk import atomic
from boxcar.shared.sentence import Sentence, _, mark

# A page of HTML from its template, in the look that all pages of Boxcar share.
#
# Autoescape is on; only charts, whose text is escaped where they are drawn, pass as they are.


_LOOK = Path(__file__).parent / "look.css"


def html(template: Path, language: str, **values: Any) -> str:
    """The whole text; each sentence in this language. The template finds the shared look as `css`;
    a name that it asks for and does not get is an error.
    """
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        finalize=lambda one: one.said(language) if isinstance(one, Sentence) else one,
    )
    text, css = template.read_text(encoding="utf-8"), _LOOK.read_text(encoding="utf-8")
    return environment.from_string(text).render(css=css, language=language, **values)


def policy_digest(script: str) -> str:
    """As a page's policy names what may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


TEMPLATE, _SCRIPT = (Path(__file__).parent / f"report_page.{kind}" for kind in ("html.j2", "js"))
# As many as a chart can hold; the groups that are far from the best are left to the table.
MOST_CURVES = 60
_NAMED = 3  # of groups of which the page says the same

# The points of each cell, by run and name.
PointsOf = Mapping[tuple[str, str], Points]


def page_of_report(report: Report, points: PointsOf, language: str = "en") -> str:
    """The whole file. The same report, points and language give the same text."""
    script = _SCRIPT.read_text(encoding="utf-8")
    return html(
        TEMPLATE,
        language,
        script=script,
        script_digest=policy_digest(script),
        header=as_text.header(report),
        runs=", ".join(report.asked.runs),
        receipts=report.receipts,
        receipt=_("receipt"),
        tables=[_table(report, table, points, language) for table in report.tables],
        best=_("best"),
        sign=as_text.BEST,
        legend=[*as_text.legend(report), _("GPU-h: hours of all attempts × ranks")],
    )


def _table(report: Report, table: Table, points: PointsOf, language: str) -> dict[str, Any]:
    columns = as_text.columns(table)
    return {
        "task": table.task,
        "baseline": as_text.title(report, table),
        "columns": columns,
        "changed_at": len(columns) - 2 - table.has_cost,
        "down_first": [
            at for m, best in enumerate(table.bests) if best == "max" for at in as_text.of_metric(m)
        ],
        "rows": [
            {
                "fields": as_text.fields(table, row),
                "best": as_text.best_at(row),
                "is_baseline": row.is_baseline,
                "is_complete": row.is_complete,
            }
            for row in table.rows
        ],
        "notes": fold_notes(table.notes, _NAMED),
        "charts": [*_lines(table, points, language), *_scatters(table)],
    }


def _lines(table: Table, points: PointsOf, language: str) -> list[dict[str, Any]]:
    """One chart for each number that the cells reported."""
    rows = shown_page(table)
    keys = dict.fromkeys(
        key for row in rows for c in row.group.cells for key in points.get((c.run, c.name), {})
    )
    found = []
    for key in keys:
        cells = [(c.run, c.name) for row in rows for c in row.group.cells]
        is_by_step, chosen = chart.on_one_axis([points.get(c, {}).get(key, []) for c in cells])
        xys = iter(chosen)
        drawn = [chart.curve(row.name, [next(xys) for _ in row.group.cells]) for row in rows]
        drawn = [curve for curve in drawn if curve.parts]
        if len({at.mean for curve in drawn for at in curve.places}) < 2:
            continue  # a number that never changes says nothing as a curve
        x_name = chart.X if is_by_step else _("report number").said(language)
        legend_ = legend(drawn, chart.looks(drawn))
        found.append({"title": key, "svg": chart.lines(drawn, x_name, key), "legend": legend_})
    return [each for each in found if each["svg"]]


def shown_page(table: Table) -> list[Row]:
    """As many as charts hold, and first those that get a colour: the baseline, and what is furthest
    from it.
    """
    metric = next(iter(table.metrics), None)
    base = _mean(next(row for row in table.rows if row.is_baseline), metric)
    return sorted(table.rows, key=lambda row: -_distance(row, base, metric))[:MOST_CURVES]


def _distance(row: Row, base: float | None, metric: str | None) -> float:
    if row.is_baseline:
        return math.inf
    mean = _mean(row, metric)
    return -1.0 if mean is None or base is None else abs(mean - base)


def _mean(row: Row, metric: str | None) -> float | None:
    spread = None if metric is None else row.group.spread(metric)
    return spread.mean if spread else None


def legend(drawn: Sequence[Curve], looks: Sequence[str]) -> list[dict[str, str]]:
    """The names of the first curves with their looks, and how many there are besides; empty where
    all of them have theirs at their ends.
    """
    more = len(drawn) - chart.COLOURS
    if more <= 0:
        return []
    pairs = list(zip(drawn, looks, strict=True))[: chart.COLOURS]
    named = [{"name": curve.group, "colour": look} for curve, look in pairs]
    return [*named, {"name": _("{n} more", n=more), "colour": "rest"}]


def _scatters(table: Table) -> list[dict[str, Any]]:
    found, currency = [], _currency(table)
    complete = [row for row in shown_page(table) if row.is_complete]
    for metric in table.metrics:
        dots = [
            Dot(row.name, _spent(row, currency), spread.mean, row.is_baseline)
            for row in complete
            if (spread := row.group.spread(metric))
        ]
        title = _(
            mark("{metric} vs. cost") if currency else mark("{metric} vs. GPU-hours"),
            metric=metric,
        )
        x_name = currency or "GPU-h"
        found.append({"title": title, "svg": chart.scatter(dots, x_name, metric), "legend": []})
    return [each for each in found if each["svg"]]


def _currency(table: Table) -> str:
    """That of all complete groups; '' where one has none, or another: then hours are compared."""
    found = {tuple(row.group.cost) for row in table.rows if row.is_complete}
    return found.pop()[0] if len(found) == 1 and all(len(one) == 1 for one in found) else ""


def _spent(row: Row, currency: str) -> float:
    return row.group.cost[currency] if currency else row.group.gpu_hours


# The page of a report beside the results that it tells of: results/RUN/report.html.


FILE = "report.html"


def page_text(project: Project, report: Report, language: str = "en") -> str:
    """With the curves of the proven cells that a chart shows, as they were pulled."""
    shown = [c for t in report.tables for row in shown_page(t) for c in row.group.cells]
    cells = [cell for cell in shown if cell.is_proven]
    metrics = gather.metrics_of(project, report.asked.runs)
    pulled = [gather.pulled(project, cell, metrics[cell.run]) for cell in cells]
    found = zip(cells, cell_series.of_cells(pulled), strict=True)
    points = {(cell.run, cell.name): chart.points_of(series) for cell, series in found}
    return page_of_report(report, points, language)


def write_page(project: Project, report: Report, language: str) -> Path:
    """Whole or not at all; the path. Of several runs it lies beside the first."""
    path = gather.results_of(project, report.asked.runs[0]).root / FILE
    atomic.write_whole(path, page_text(project, report, language).encode())
    return path
