"""The page of one look at a run: one file, with a script of its own that only asks for it again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.view.looks import state_glyph
from boxcar.laptop.view.needs import Need
from boxcar.laptop.view.page import cell_curves, live_chart
from boxcar.laptop.view.page.cell_curves import Drawn, Reports
from boxcar.laptop.view.page.page_state import PageState
from boxcar.laptop.view.report import chart
from boxcar.laptop.view.report.report_page import html, policy_digest
from boxcar.laptop.view.run_fields import BOXES, CELLS, NEEDS, Field, R, Table
from boxcar.laptop.view.run_rows import ENDED, BoxRow, CellRow, Facts, RunRows
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
OPENED_TEMPLATE, CSS = _HERE / "opened_cell.html.j2", _HERE / "live_page.css"
_MINUTES, _POINTS = 30, 30  # of a GPU's half hour, and of a cell's curve
_NONE_TOLD: Mapping[str, str] = {}


@dataclass(frozen=True)
class Reading:
    """How often whoever reads the page asks for it again, and from which age it is called old."""

    every_s: float
    old_s: float


@dataclass(frozen=True)
class OpenedCell:
    """What a cell shows when it is opened: sentences, and of its history when each was. `log` are
    its last lines, None where nobody may see them; `log_note` says what is to be said of them.
    """

    cell: str
    state: str
    facts: tuple[str, ...]
    history: tuple[tuple[str, str], ...]
    next: str
    log: tuple[str, ...] | None = None
    log_note: str = ""


def page_of_run(
    rows: RunRows,
    reports: Reports,
    reading: Reading,
    private: Private,
    *,
    number: int = 0,
    told: Mapping[str, str] = _NONE_TOLD,
) -> PageState:
    """The whole file, in the rows' language; nothing private is in what a script, a library or ssh
    has said. With a `number` it is served, and each cell can be opened; else those that are `told`.
    """
    script = SCRIPT.read_text(encoding="utf-8")
    made = _sections(rows, private)
    before_all = [section["id"] for section in made if not section["is_folded"]]
    drawn = _drawn_curves(rows, reports)
    text = html(
        TEMPLATE,
        rows.facts.language,
        **_head(rows, private),
        **_words(),
        own_css=CSS.read_text(encoding="utf-8"),
        script=script,
        script_digest=policy_digest(script),
        every_s=reading.every_s,
        old_s=reading.old_s,
        number=number,
        sections=made,
        opens={cell.name for cell in rows.view.cells} if number else told.keys(),
        told=told,
        charts=_charts(rows, drawn),
        legend=_legend(drawn),
        charts_after=before_all[-1] if before_all else "",
    )
    return PageState(text, number)


def _words() -> dict[str, str]:
    """What the page says of itself."""
    return {
        "ago": _("updated {{}} ago,"),
        "just_now": _("updated just now,"),
        "gone": _("Disconnected. Last update {{}}."),
        "found": _("{{n}} of {{all}} cells"),
        "loading": _("loading…"),
        "close": _("close"),
        "filter": _("filter"),
        "keys": _("/ filters, arrows or j k move, Enter opens, Esc closes"),
        "opened": _("opened cells"),
        "curves": _("curves"),
    }


def opened_text(opened: OpenedCell, facts: Facts, private: Private) -> str:
    """What the page puts in where somebody opens the cell."""

    def clean(text: str) -> str:
        return private.cleaned(facts.said(text))

    sign, look = state_glyph(opened.state, facts.glyphs)
    return html(
        OPENED_TEMPLATE,
        facts.language,
        cell=opened.cell,
        is_over=opened.state in ENDED,
        sign=sign,
        look=look,
        state=facts.said(state_sentence(opened.state)),
        facts=[clean(fact) for fact in opened.facts],
        next=clean(opened.next),
        happened=_("what happened"),
        history=[(at, clean(what)) for at, what in opened.history],
        log_title=_("end of the log") if opened.log is not None or opened.log_note else "",
        log_note=clean(opened.log_note),
        log=[clean(line) for line in opened.log or ()],
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


def _drawn_curves(rows: RunRows, reports: Reports) -> dict[str, Drawn]:
    """By number that the cells report; those at work come first."""
    cells = [row.cell for row in (*rows.under_way, *rows.done, *rows.failed)]
    return cell_curves.draw_curves(reports, cells, rows.facts.metrics)


def _charts(rows: RunRows, drawn: Mapping[str, Drawn]) -> list[dict[str, Any]]:
    language = rows.facts.language
    return [
        {"title": key, "svg": live_chart.draw(found, found.x_name(language), key)}
        for key, found in drawn.items()
    ]


def _legend(drawn: Mapping[str, Drawn]) -> list[dict[str, str]]:
    """Of all charts at once: a cell looks the same in each."""
    looks: dict[str, str] = {}
    for found in drawn.values():
        looks |= {curve.group: look for curve, look in zip(found.curves, found.looks, strict=True)}
    return [{"name": cell, "colour": look} for cell, look in looks.items()]


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
        _section(rows, "cells", cells, CELLS, every, has_bars=False) | {"is_folded": True},
    ]
    return [one for one in made if one["rows"]]


def _section(
    rows: RunRows,
    id_: str,
    title: str,
    table: Table[R],
    shown: Sequence[R],
    *,
    has_bars: bool = True,
) -> dict[str, Any]:
    """A table without the columns in which no row says anything, and with a sign before what it is
    of. `right` are the columns, by number, that hold numbers.
    """
    said, columns = rows.facts.said, list(table.columns)
    fields = [list(table.fields(row, rows.facts)) for row in shown]
    if table is not BOXES:
        columns = columns[1:]
        fields = [
            [Field(f"{sign.text}\u00a0{first.text}".strip(), sign.look), *rest]
            for sign, first, *rest in fields
        ]
    drawn = [
        [
            _drawn(field, column.is_right, has_bars=has_bars)
            for field, column in zip(row, columns, strict=True)
        ]
        for row in fields
    ]
    kept = [
        at for at in range(len(columns)) if any(row[at]["text"] or row[at]["svg"] for row in drawn)
    ]
    return {
        "id": id_,
        "title": said(title),
        "columns": [said(columns[at].title or columns[at].name) for at in kept],
        "rows": [
            _named(row, number) | {"fields": [one[at] for at in kept]}
            for number, (row, one) in enumerate(zip(shown, drawn, strict=True))
        ],
        "right": [new for new, at in enumerate(kept) if columns[at].is_right],
        "is_folded": False,
    }


def _named(row: Need | CellRow | BoxRow, number: int) -> dict[str, str | None]:
    """By which a row is the same one after the next look, and the cell that it opens."""
    if isinstance(row, BoxRow):
        return {"id": row.queue.name, "cell": None}
    return {"id": str(number) if isinstance(row, Need) else row.cell, "cell": row.cell}


def _drawn(field: Field, is_right: bool, *, has_bars: bool) -> dict[str, str]:
    """A row of bars says in words where it begins and ends."""
    if field.bars is None:
        look = f"r {field.look}".strip() if is_right else field.look
        return {"text": field.text, "look": look, "svg": ""}
    heights = field.bars.heights(_MINUTES if field.bars.span_s else _POINTS)
    known = [value for value in heights if value is not None]
    svg = chart.spark(heights, field.bars.low, field.bars.high) if has_bars else ""
    if svg:
        ends = " … ".join(map(units.four_digits, (known[0], known[-1])))
        svg += f'<span class="unseen">{ends}</span>'
    return {"text": "", "look": "", "svg": svg}
