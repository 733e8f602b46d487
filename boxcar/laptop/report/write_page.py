"""The page of a report beside the results that it tells of: results/RUN/report.html."""

from __future__ import annotations

from pathlib import Path

from boxcar.laptop.project.project import Project
from boxcar.laptop.report import curves, gather, report_page
from boxcar.laptop.report.run_report import Report
from boxcar.shared.disk import atomic

FILE = "report.html"


def text(project: Project, report: Report) -> str:
    """With the curves of all proven cells, as they were pulled."""
    points = {
        (cell.run, cell.name): curves.points_of(
            gather.results_of(project, cell.run).cell(cell.name)
        )
        for group in report.groups
        for cell in group.cells
        if cell.is_proven
    }
    return report_page.page(report, points)


def write(project: Project, report: Report) -> Path:
    """Whole or not at all; the path. Of several runs it lies beside the first."""
    path = gather.results_of(project, report.asked.runs[0]).root / FILE
    atomic.write_whole(path, text(project, report).encode())
    return path
