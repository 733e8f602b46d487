"""`invoke report`: the ablation as a table, a page, LaTeX, CSV or JSON.

Made of the receipt and of what lies beside it, so it asks no box and works after the teardown.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.common.near import no_choice, no_such, the_run
from boxcar.laptop.project.project import Project
from boxcar.laptop.teardown import meters
from boxcar.laptop.view.report import as_text, gather, report_page
from boxcar.laptop.view.report.run_report import Asked, Report
from boxcar.laptop.view.report.table import Row, Table, fold_notes
from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _

TEXTS = {"md": as_text.markdown, "latex": as_text.latex, "csv": as_text.as_csv}
KINDS = ("html", *TEXTS, "json")


def report(project: Project, asked: Asked, *, to: str = "", as_json: bool = False) -> int:
    """Returns 1 where LaTeX leaves a group out because it is incomplete. Raises InputError for a
    kind that does not exist, and where nothing is verified.
    """
    if to and to not in KINDS:
        raise InputError(no_choice("--to", KINDS, to))
    made = gather.report_of(project, asked)
    _refuse_unknown(project, made)
    if as_json or to == "json":
        show.json_document("report", as_text.document(made))
    elif to in TEXTS:
        sys.stdout.write(TEXTS[to](made))
    elif to:
        show.line(str(report_page.write_page(project, made, show.language())))
    else:
        _show(project, made)
    return _say_left_out(made) if to == "latex" else 0


def _refuse_unknown(project: Project, made: Report) -> None:
    """What a person typed. What job.yaml names may be what no cell has yet."""
    found = {name for group in made.groups for cell in group.cells for name in cell.numbers}
    known = sorted(found | {metric.name for metric in project.plan.metrics})
    for name in made.asked.metrics:
        if name not in known and name not in project.job.report.metric:
            runs = ", ".join(made.asked.runs)
            raise InputError(no_such(name, known, what="metric", of=the_run(runs)))


def _show(project: Project, made: Report) -> None:
    for shown in made.tables:
        columns = [show.typed(name) for name in as_text.columns(shown)]
        title, last = as_text.title(made, shown), columns[:-4:-1]
        rows = [_row(shown, row) for row in shown.rows]
        show.table(title, columns, rows, names=columns[:1], first_to_go=last, bold=as_text.BEST)
        notes = fold_notes(shown.notes, show.ALIKE) if show.is_shortened() else shown.notes
        show.say_of_each(("", note) for note in notes)
    receipts = ", ".join(map(digest.short, made.receipts.values()))
    show.say(_("receipt {digest}", digest=receipts))
    for said in as_text.legend(made):
        show.say(said)
    path = report_page.write_page(project, made, show.language())
    show.say(_("written: {file}", file=path))
    for row in meters.meter_rows(meters.open_meters_of(project, project.results)):
        show.alarm(row)


def _row(shown: Table, row: Row) -> list[str]:
    best = as_text.best_at(row)
    found = enumerate(as_text.fields(shown, row))
    return [f"{field} {as_text.BEST}" if at in best else field for at, field in found]


def _say_left_out(made: Report) -> int:
    names = as_text.left_out(made)
    if names:
        show.say(
            _(
                "{n} incomplete {n:group|groups} left out: {names}. --incomplete shows "
                "{n:it|them} in brackets",
                n=len(names),
                names=", ".join(names),
            )
        )
    return 1 if names else 0


def asked_of(project: Project, runs: Sequence[str], asked: Asked) -> Asked:
    """With the words of job.yaml where the person gave none."""
    said = project.job.report
    return replace(
        asked,
        runs=tuple(runs) or (project.plan.run,),
        metrics=asked.metrics or (*said.metric,),
        baseline=asked.baseline or said.baseline,
        seed_key=said.seed,
        best={name: best for name, best in said.metric.items() if best},
    )
