"""The page of one look at a run: one file, with a script of its own that only asks for it again."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.view.looks import state_glyph
from boxcar.laptop.view.page import cell_curves
from boxcar.laptop.view.page.cell_curves import Reports
from boxcar.laptop.view.report import chart
from boxcar.laptop.view.report.report_page import html, legend
from boxcar.laptop.view.run_fields import BOXES, CELLS, NEEDS, Field, R, Table
from boxcar.laptop.view.run_rows import RunRows
from boxcar.shared import timestamp
from boxcar.shared.known_secrets import LEFT_OUT, NONE_KNOWN, KnownSecrets
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# What of other people's words leaves this machine with a page: no address, URL, login or secret.
#
# A box's own name is what the job calls it. What ssh, a script or a library printed may hold more,
# and a page may be read by others. Pure.


_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+",
        r"(?i)(?<=\bbearer )\S+",
        r"(?i)(?<=token=)\S+|(?<=secret=)\S+|(?<=password=)\S+|(?<=api_key=)\S+|(?<=apikey=)\S+",
        r"\b(?:sk-|hf_|ghp_|whsec_|AKIA)[A-Za-z0-9_+/=-]{8,}",
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+(?::\d+)?",
        # As ssh names who does not answer.
        r"(?<=\bhostname )[^\s:]+|(?<=\bhost )[\w-]+(?:\.[\w-]+)+(?: port \d+)?",
        r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+|(?: port \d+))?\b",
        r"(?i)(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}(?![\w:])",
    )
)


class Private:
    """What is `known` is in no page, however it looks."""

    def __init__(self, known: KnownSecrets = NONE_KNOWN) -> None:
        self._known = known

    def cleaned(self, text: str) -> str:
        cleaned: str = self._known.left_out_of(text)
        for pattern in _PATTERNS:
            cleaned = pattern.sub(LEFT_OUT, cleaned)
        return cleaned


_HERE = Path(__file__).parent
TEMPLATE, SCRIPT = _HERE / "live_page.html.j2", _HERE / "live_page.js"
_MINUTES, _POINTS = 30, 60  # of a GPU's half hour, and of a cell's curve


@dataclass(frozen=True)
class Reading:
    """How often whoever reads the page asks for it again, and from which age it is called old."""

    every_s: float
    old_s: float


def page_of_run(rows: RunRows, reports: Reports, reading: Reading, private: Private) -> str:
    """The whole file, in the rows' language; nothing private is in what a script, a library or ssh
    has said.
    """
    script = SCRIPT.read_text(encoding="utf-8")
    made = _sections(rows, private)
    before_all = [section["id"] for section in made if not section["is_folded"]]
    return html(
        TEMPLATE,
        rows.facts.language,
        **_head(rows, private),
        script=script,
        script_digest=_digest(script),
        every_s=reading.every_s,
        old_s=reading.old_s,
        ago=_("updated {{}} ago,"),
        just_now=_("updated just now,"),
        gone=_("Disconnected. Last update {{}}."),
        sections=made,
        charts=_charts(rows, reports),
        charts_after=before_all[-1] if before_all else "",
    )


def _head(rows: RunRows, private: Private) -> dict[str, Any]:
    facts, said, at = rows.facts, rows.facts.said, rows.view.at
    left = _("{time} left", time=units.about(rows.left_s)) if rows.left_s else ""
    return {
        "title": rows.run,
        "about": f"{facts.profile} · {said(_('{n} {n:box|boxes}', n=len(rows.boxes)))}",
        "at": at,
        "looked": timestamp.parse_utc(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %z"),
        "money": rows.money,
        "cells": _("{n} {n:cell|cells}", n=len(rows.view.cells)),
        "counts": [_count(rows, state, number) for state, number in rows.counts],
        "left": said(left),
        "next": said(_("next: {command}", command=facts.next)) if facts.next else "",
        "because": private.cleaned(facts.because),
    }


def _count(rows: RunRows, state: str, number: int) -> dict[str, str]:
    sign, look = state_glyph(state, rows.facts.glyphs)
    return {"text": f"{sign} {number} {rows.facts.said(state_sentence(state))}", "look": look}


def _charts(rows: RunRows, reports: Reports) -> list[dict[str, Any]]:
    """One for each number that the cells report; those at work come first."""
    cells = [row.cell for row in (*rows.under_way, *rows.done, *rows.failed)]
    drawn = cell_curves.draw_curves(reports, cells, rows.facts.metrics)
    return [
        {
            "title": key,
            "svg": chart.lines(found.curves, found.x_name(rows.facts.language), key, found.looks),
            "legend": legend(found.curves, found.looks),
        }
        for key, found in drawn.items()
    ]


def _sections(rows: RunRows, private: Private) -> list[dict[str, Any]]:
    """What the board of the terminal holds, without its fear of a ninth row. One that is folded
    shows its title alone until somebody opens it.
    """
    needs = [
        replace(need, text=private.cleaned(rows.facts.said(need.text))) for need in rows.short_needs
    ]
    boxes = _("boxes ({n})", n=len(rows.boxes))
    every = rows.all_cells
    cells = f"{rows.facts.said(_('cells'))} ({len(every)})"
    made = [
        _section(rows, "needs", _("needs attention"), NEEDS, needs),
        _section(rows, "boxes", boxes, BOXES, rows.boxes),
        _section(rows, "running", _("running"), CELLS, rows.under_way),
        _section(rows, "cells", cells, CELLS, every) | {"is_folded": True},
    ]
    return [one for one in made if one["rows"]]


def _section(
    rows: RunRows, id: str, title: str, table: Table[R], shown: Sequence[R]
) -> dict[str, Any]:
    """A table without the columns in which no row says anything, and with a sign before what it is
    of. `left` are the columns, by number, that hold words.
    """
    said, columns = rows.facts.said, list(table.columns)
    fields = [list(table.fields(row, rows.facts)) for row in shown]
    if table is not BOXES:
        columns = columns[1:]
        fields = [
            [Field(f"{sign.text} {first.text}".strip(), sign.look), *rest]
            for sign, first, *rest in fields
        ]
    drawn = [[_drawn(field) for field in row] for row in fields]
    kept = [
        at for at in range(len(columns)) if any(row[at]["text"] or row[at]["svg"] for row in drawn)
    ]
    return {
        "id": id,
        "title": said(title),
        "columns": [said(columns[at].title) for at in kept],
        "rows": [[row[at] for at in kept] for row in drawn],
        "left": [new for new, at in enumerate(kept) if not columns[at].is_right],
        "is_folded": False,
    }


def _drawn(field: Field) -> dict[str, str]:
    if field.bars is None:
        return {"text": field.text, "look": field.look, "svg": ""}
    heights = field.bars.heights(_MINUTES if field.bars.span_s else _POINTS)
    svg = chart.spark(heights, field.bars.low, field.bars.high)
    return {"text": "", "look": "", "svg": svg}


def _digest(script: str) -> str:
    """As a policy names what may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
