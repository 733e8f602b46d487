"""A report as Markdown, LaTeX, CSV or JSON. Pure, and the same for the same receipt.

Each names the digest of its receipt and what was asked for, so that it can be made again.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from boxcar.laptop.common.text_layout import plain
from boxcar.laptop.view.report.groups import ReportCell
from boxcar.laptop.view.report.run_report import Report
from boxcar.laptop.view.report.table import Row, Table
from boxcar.shared.files.codec import encode
from boxcar.shared.sentence import _

BEGIN = "boxcar report"
BEST = "★"
_FIRST_NUMBER = 2  # the column
_DIRECTIONS = {"min": " ↓", "max": " ↑"}
_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "→": r"$\to$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "Δ": r"$\Delta$",
    "−": "$-$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def header(report: Report) -> str:
    """One line for a comment: the receipt, and what was asked for."""
    asked = json.dumps(encode(report.asked), ensure_ascii=True, separators=(",", ":"))
    return f"{BEGIN}; receipt {report.digest}; {asked}"


def columns(table: Table) -> list[str]:
    heads = (
        f"{m}{_DIRECTIONS.get(of, '')}" for m, of in zip(table.metrics, table.bests, strict=True)
    )
    numbers = [part for head in heads for part in (head, _("Δ baseline"))]
    cost = [_("cost")] * table.has_cost
    begin = (_("cell"), _("n"), *numbers, _("changed vs. baseline"))
    return [*begin, "GPU-h", *cost, _("attempts")]


def fields(table: Table, row: Row) -> list[str]:
    """As many as there are columns."""
    numbers = [part for pair in zip(row.numbers, row.deltas, strict=True) for part in pair]
    cost = [row.cost or "-"] * table.has_cost
    return [row.name, row.n, *numbers, changed(row), row.hours, *cost, str(row.attempts)]


def best_at(row: Row) -> list[int]:
    """The columns in which its number is the best one."""
    return [of_metric(at)[0] for at, is_best in enumerate(row.bests) if is_best]


def of_metric(at: int) -> tuple[int, int]:
    """The columns of a table's number and of its difference."""
    return _FIRST_NUMBER + 2 * at, _FIRST_NUMBER + 2 * at + 1


def legend(report: Report) -> list[str]:
    """What the numbers and signs of the tables mean."""
    said: list[str] = []
    if any(
        "±" in number for table in report.tables for row in table.rows for number in row.numbers
    ):
        said.append(
            _(
                "mean±standard deviation over seeds; differences have a 95 % interval (Welch) "
                "where both sides have three seeds"
            )
        )
    if any(any(table.bests) for table in report.tables):
        said.append(
            _(
                "{sign} best, ↓ lower is better, ↑ higher is better; neither better nor worse is "
                "said where the interval includes 0",
                sign=BEST,
            )
        )
    return said


def _of_paper(table: Table, parts: Sequence[str]) -> Sequence[str]:
    """Without hours, cost and attempts."""
    return parts[: -2 - table.has_cost]


def changed(row: Row) -> str:
    """What a person reads of the change; `(!)` where it is more than one key, `(GPU)` where it was
    not trained on what the baseline was.
    """
    marks = [*([] if row.is_clean else ["(!)"]), *(["(GPU)"] if row.has_other_gpus else [])]
    return " ".join(["; ".join(row.changed) or "-", *marks])


def markdown(report: Report) -> str:
    lines = [f"<!-- {header(report).replace('--', '- -')} -->", ""]
    for table in report.tables:
        lines += [f"**{_md(title(report, table))}**", ""]
        lines += [_md_row(columns(table)), _md_row(["---"] * len(columns(table)))]
        lines += [_md_row(fields(table, row), best_at(row)) for row in table.rows]
        lines += ["", *(f"- {_md(note)}" for note in table.notes), ""]
    return "\n".join([*lines, *map(_md, legend(report)), ""])


def latex(report: Report) -> str:
    """Tables for booktabs, without incomplete groups unless they were asked for."""
    lines = [f"% {header(report)}", "% needs \\usepackage{booktabs}"]
    for table in report.tables:
        kept = [r for r in table.rows if r.is_complete or report.asked.is_incomplete_shown]
        names = _of_paper(table, columns(table))
        lines += [f"% {title(report, table)}", f"\\begin{{tabular}}{{l{'r' * (len(names) - 2)}l}}"]
        lines += ["\\toprule", _tex_row(names), "\\midrule"]
        lines += [_tex_row(_of_paper(table, fields(table, row)), best_at(row)) for row in kept]
        lines += ["\\bottomrule", "\\end{tabular}"]
        lines += [f"% {note}" for row in kept for note in row.notes]
    return "\n".join([*lines, ""])


def left_out(report: Report) -> list[str]:
    """The groups that LaTeX does not get."""
    rows = (row for table in report.tables for row in table.rows)
    return [] if report.asked.is_incomplete_shown else [r.name for r in rows if not r.is_complete]


def as_csv(report: Report) -> str:
    """A line for each cell, with its numbers as they are; what is not proven has none."""
    names = list(dict.fromkeys(m for g in report.groups for cell in g.cells for m in cell.numbers))
    keys = list(dict.fromkeys(key for g in report.groups for c in g.cells for key in c.settings))
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    about = ["run", "group", "cell", "seed", "is_proven", "lack", "doubt"]
    head = [*about, "attempts", "gpu_hours", "price", "gpus", "gpu_uuids", "driver", "ranks"]
    head += names
    head += [*(f"set.{key}" for key in keys), "receipt"]
    for row in (head, *_csv_rows(report, names, keys)):
        rows.writerow([_no_formula(value) for value in row])
    return out.getvalue()


def _csv_rows(report: Report, names: Sequence[str], keys: Sequence[str]) -> Iterator[list[Any]]:
    for group in report.groups:
        for seed, cell in zip(group.seeds, group.cells, strict=True):
            about = [cell.run, group.name, cell.name, seed, cell.is_proven, cell.lack, cell.doubt]
            hours = [cell.attempts, f"{cell.gpu_hours:.4f}", cell.price, *_trained_on(cell)]
            numbers = ["" if (v := cell.numbers.get(name)) is None else v for name in names]
            told = [cell.settings.get(key, "") for key in keys]
            yield [*about, *hours, *numbers, *told, report.receipts[cell.run]]


def _trained_on(cell: ReportCell) -> list[Any]:
    """Its GPUs, their UUIDs, the driver, and the ranks; '' of what nobody knows."""
    uuids = [gpu.uuid for gpu in cell.trained_on.gpus if gpu.uuid] if cell.trained_on else []
    driver = cell.trained_on.driver if cell.trained_on else ""
    return [cell.gpus, " ".join(uuids), driver, cell.ranks]


def _no_formula(value: Any) -> Any:
    """A spreadsheet runs a text that begins like a formula, and a terminal control characters."""
    value = plain(value) if isinstance(value, str) else value
    is_text = isinstance(value, str) and value[:1] in ("=", "@", "+", "-", "\t", "\r")
    return f"'{value}" if is_text and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        return bool(math.isfinite(float(text)))
    except ValueError:
        return False


def document(report: Report) -> dict[str, Any]:
    """What `--json` prints. A number that is not finite is text: JSON has none."""
    return {
        "receipts": dict(report.receipts),
        "asked": encode(report.asked),
        "is_complete": report.is_complete,
        "tables": [
            {
                "task": table.task,
                "baseline": table.baseline,
                "metrics": list(table.metrics),
                "groups": [_group_document(row, table.metrics) for row in table.rows],
            }
            for table in report.tables
        ],
    }


def _group_document(row: Row, metrics: Sequence[str]) -> dict[str, Any]:
    spreads = {metric: row.group.spread(metric) for metric in metrics}
    return {
        "group": row.name,
        "is_complete": row.is_complete,
        "is_clean": row.is_clean,
        "changed": list(row.changed),
        "has_other_gpus": row.has_other_gpus,
        "numbers": {name: encode(found) if found else None for name, found in spreads.items()},
        "gpu_hours": round(row.group.gpu_hours, 4),
        "cost": {currency: round(total, 4) for currency, total in row.group.cost.items()},
        "attempts": row.attempts,
        "notes": [str(note) for note in row.notes],
        "cells": [
            {
                "run": cell.run,
                "cell": cell.name,
                "seed": seed or None,
                "lack": cell.lack or None,
                **({"doubt": cell.doubt} if cell.doubt else {}),
                **({"trained_on": encode(cell.trained_on)} if cell.trained_on else {}),
                "numbers": {name: _json_number(v) for name, v in cell.numbers.items()},
                "settings": dict(cell.settings),
            }
            for seed, cell in zip(row.group.seeds, row.group.cells, strict=True)
        ],
    }


def _json_number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def title(report: Report, table: Table) -> str:
    return _(
        "{runs}: {task}; baseline: {baseline}",
        runs=", ".join(report.asked.runs),
        task=table.task,
        baseline=table.baseline,
    )


def _md_row(parts: Sequence[str], best: Sequence[int] = ()) -> str:
    texts = (
        f"**{_md(part)} {BEST}**" if at in best else _md(part) for at, part in enumerate(parts)
    )
    return f"| {' | '.join(texts)} |"


def _md(text: str) -> str:
    """Nothing of a name is a column, a link, HTML or a new line."""
    one_line = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\|*_<>[]`" else c for c in one_line)


def _minus(field: str) -> str:
    """A number below zero has the sign of one, and not a hyphen."""
    return re.sub(r"^(\(?)-(?=[\d.])", "\\1−", field)


def _tex_row(parts: Sequence[str], best: Sequence[int] = ()) -> str:
    texts = [_tex(_minus(part)) for part in parts]
    for at in best:
        texts[at] = rf"\textbf{{{texts[at]}}}"
    return f"{' & '.join(texts)} \\\\"


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in " ".join(text.split()))
