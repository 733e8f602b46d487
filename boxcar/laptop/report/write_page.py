"""The page of a report beside the results that it tells of: results/RUN/report.html."""

from __future__ import annotations

from pathlib import Path

from boxcar.laptop.project.project import Project
from boxcar.laptop.report import cell_series, curves, gather, report_page
from boxcar.laptop.report.run_report import Report
from boxcar.shared.disk import atomic

FILE = "report.html"


def page_text(project: Project, report: Report) -> str:
    """With the curves of the proven cells that a chart shows, as they were pulled."""
    shown = [c for t in report.tables for row in report_page.shown_page(t) for c in row.group.cells]
    cells = [cell for cell in shown if cell.is_proven]
    metrics = gather.metrics_of(project, report.asked.runs)
    pulled = [gather.pulled(project, cell, metrics[cell.run]) for cell in cells]
    found = zip(cells, cell_series.of_cells(pulled), strict=True)
    points = {(cell.run, cell.name): curves.points_of(series) for cell, series in found}
    return report_page.page_of_report(report, points)


def write_page(project: Project, report: Report) -> Path:
    """Whole or not at all; the path. Of several runs it lies beside the first."""
    path = gather.results_of(project, report.asked.runs[0]).root / FILE
    atomic.write_whole(path, page_text(project, report).encode())
    return path
