"""The page of one look at a run: one file, with a script of its own that only asks for it again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic

from boxcar.laptop.common import units
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.run.view import GUESS
from boxcar.laptop.view.gpu_history import is_number
from boxcar.laptop.view.looks import state_glyph
from boxcar.laptop.view.needs import Need
from boxcar.laptop.view.page import cell_curves, live_chart
from boxcar.laptop.view.page.cell_curves import Drawn, Reports, Told
from boxcar.laptop.view.page.page_state import PageState
from boxcar.laptop.view.report import chart
from boxcar.laptop.view.report.report_page import html, policy_digest
from boxcar.laptop.view.run_fields import BOXES, CELLS, NEEDS, Column, Field, R, Table
from boxcar.laptop.view.run_rows import ENDED, BoxRow, CellRow, Facts, RunRows
from boxcar.shared import timestamp
from boxcar.shared.known_secrets import LEFT_OUT, NONE_KNOWN, KnownSecrets
from boxcar.shared.metrics.records import NOT_METRICS
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
_NUMBER_COLUMNS = 6
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


@dataclass(frozen=True)
class Shown:
    """A run on the page, with its curves and what is private of it. One of several has a `name`,
    which stands before its cells, boxes and queues.
    """

    rows: RunRows
    reports: Reports
    private: Private
    name: str = ""

    def of(self, name: str) -> str:
        """As the page calls a cell of this run, or another part of it."""
        return f"{self.name}/{name}" if self.name else name

    def of_run(self, text: str) -> str:
        """What is said of the run as a whole."""
        return f"{self.name}: {text}" if self.name else text


def page_of_run(
    rows: RunRows,
    reports: Reports,
    reading: Reading,
    private: Private,
    *,
    number: int = 0,
    told: Mapping[str, str] = _NONE_TOLD,
) -> PageState:
    """See `page_of_runs`."""
    return page_of_runs([Shown(rows, reports, private)], reading, number=number, told=told)


def page_of_runs(
    runs: Sequence[Shown],
    reading: Reading,
    *,
    number: int = 0,
    told: Mapping[str, str] = _NONE_TOLD,
) -> PageState:
    """The whole file, in the rows' language; nothing private is in what a script, a library or ssh
    has said. With a `number` it is served, and each cell can be opened; else those that are `told`.
    Several runs share its tables and its charts.
    """
    script, facts = SCRIPT.read_text(encoding="utf-8"), runs[0].rows.facts
    made = _sections(runs)
    before_all = [section["id"] for section in made if not section["is_folded"]]
    drawn = _drawn_curves(runs)
    every = {one.of(cell.name) for one in runs for cell in one.rows.view.cells}
    text = html(
        TEMPLATE,
        facts.language,
        **_head(runs),
        **_words(),
        own_css=CSS.read_text(encoding="utf-8"),
        script=script,
        script_digest=policy_digest(script),
        every_s=reading.every_s,
        old_s=reading.old_s,
        number=number,
        sections=made,
        opens=every if number else told.keys(),
        told=told,
        charts=_charts(facts, drawn),
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
        "keys": _(
            "/ filters, arrows or j k move, Enter opens, Esc closes, z shows the end of all curves"
        ),
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


def _head(runs: Sequence[Shown]) -> dict[str, Any]:
    """Of several runs: all their cells, the oldest look, and the last to end."""
    all_rows = [one.rows for one in runs]
    said, at = all_rows[0].facts.said, min(rows.view.at for rows in all_rows)
    left_s = [rows.left_s for rows in all_rows]
    known_s = [seconds for seconds in left_s if seconds]
    left = (
        _("{time} left", time=units.about(max(known_s))) if known_s and None not in left_s else ""
    )
    steps = [_next(one) for one in runs]
    alone = len(runs) == 1
    return {
        "title": " · ".join(one.name or one.rows.run for one in runs),
        "about": "; ".join(map(_about, runs)),
        "at": at,
        "looked": timestamp.parse_utc(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %z"),
        "money": "; ".join(one.of_run(str(one.rows.money)) for one in runs if one.rows.money),
        "cells": _("{n} {n:cell|cells}", n=sum(len(rows.view.cells) for rows in all_rows)),
        "counts": _counts(all_rows),
        "left": said(left),
        "next": steps[0][0] if alone else "",
        "because": steps[0][1] if alone else "; ".join(" ".join(step).strip() for step in steps),
    }


def _about(shown: Shown) -> str:
    rows = shown.rows
    boxes = rows.facts.said(_("{n} {n:box|boxes}", n=len(rows.boxes)))
    return shown.of_run(f"{rows.facts.profile} · {boxes}")


def _next(shown: Shown) -> tuple[str, str]:
    """The command to type, and why."""
    facts = shown.rows.facts
    command = facts.said(_("next: {command}", command=facts.next)) if facts.next else ""
    because = shown.private.cleaned(facts.because)
    return (command, because) if not shown.name else (shown.of_run(command or because), "")


def _counts(all_rows: Sequence[RunRows]) -> list[dict[str, str]]:
    counted: dict[str, int] = {}
    for state, number in (pair for rows in all_rows for pair in rows.counts):
        counted[state] = counted.get(state, 0) + number
    return [_count(all_rows[0], state, number) for state, number in counted.items()]


def _count(rows: RunRows, state: str, number: int) -> dict[str, str]:
    sign, look = state_glyph(state, rows.facts.glyphs)
    return {"text": f"{sign} {number} {rows.facts.said(state_sentence(state))}", "look": look}


def _drawn_curves(runs: Sequence[Shown]) -> dict[str, Drawn]:
    """By number that the cells report; those at work come first."""
    reports, ahead = dict[str, Told](), 0
    for one in runs:
        told = one.reports.items()
        reports |= {one.of(cell): replace(of, place=of.place + ahead) for cell, of in told}
        ahead += len(one.rows.view.cells)
    cells = [
        one.of(row.cell)
        for which in ("under_way", "done", "failed")
        for one in runs
        for row in getattr(one.rows, which)
    ]
    named = dict.fromkeys(name for one in runs for name in one.rows.facts.metrics)
    return cell_curves.draw_curves(reports, cells, [*named])


def _charts(facts: Facts, drawn: Mapping[str, Drawn]) -> list[dict[str, Any]]:
    return [
        {"title": key, "svg": live_chart.draw(found, found.x_name(facts.language), key)}
        for key, found in drawn.items()
    ]


def _legend(drawn: Mapping[str, Drawn]) -> list[dict[str, str]]:
    """Of all charts at once: a cell looks the same in each."""
    looks: dict[str, str] = {}
    for found in drawn.values():
        looks |= {curve.group: look for curve, look in zip(found.curves, found.looks, strict=True)}
    return [{"name": cell, "colour": look} for cell, look in looks.items()]


def _sections(runs: Sequence[Shown]) -> list[dict[str, Any]]:
    """What the board of the terminal holds, without its fear of a ninth row. One that is folded
    shows its title alone until somebody opens it.
    """
    said = runs[0].rows.facts.said
    boxes = [_Part(one, one.rows.boxes) for one in runs]
    cells = [_Part(one, one.rows.all_cells) for one in runs]
    title = f"{said(_('cells'))} ({sum(len(part.shown) for part in cells)})"
    n_boxes = _("boxes ({n})", n=sum(len(part.shown) for part in boxes))
    under_way = [_Part(one, one.rows.under_way) for one in runs]
    table = _with_number_columns([row for part in cells for row in part.shown])
    made = [
        _section("needs", _("needs attention"), NEEDS, [_Part(one, _needs(one)) for one in runs]),
        _section("boxes", n_boxes, BOXES, boxes),
        _section("running", _("running"), table, under_way),
        _section("cells", title, table, cells, has_bars=False) | {"is_folded": True},
    ]
    return [one for one in made if one["rows"]]


def _with_number_columns(rows: Sequence[CellRow]) -> Table[CellRow]:
    """Of cells, with a column for each of their first numbers: by each of them they are sorted. The
    curve is that of the first one.
    """
    heads = dict.fromkeys(name for row in rows if (name := _column_name(row.headline_name)))
    named = dict.fromkeys(_column_name(name) for row in rows for name in _number_names(row))
    names = [*{**heads, **named}][:_NUMBER_COLUMNS]
    first, after = _columns_of("number"), _columns_of("other numbers") + 1
    columns = (
        *CELLS.columns[:first],
        *(Column(name, keep=5, is_right=True) for name in names[:1]),
        CELLS.columns[first + 1],
        *(Column(name, keep=5, is_right=True) for name in names[1:]),
        *CELLS.columns[after:],
    )

    def fields(row: CellRow, facts: Facts) -> Sequence[Field]:
        found, numbers = CELLS.fields(row, facts), [Field(_number(row, name)) for name in names]
        curve = found[first + 1] if _column_name(row.headline_name) in names[:1] else Field()
        return (*found[:first], *numbers[:1], curve, *numbers[1:], *found[after:])

    return Table(columns, fields)


def _number_names(row: CellRow) -> list[str]:
    """Those that the job names first."""
    known = [name for name in row.named if name in row.last_numbers]
    there = [name for name, value in row.last_numbers.items() if is_number(value)]
    return [name for name in dict.fromkeys([*known, *there]) if name not in NOT_METRICS]


def _number(row: CellRow, name: str) -> str:
    """`0.41 (best 0.38)`, `~0.41` where it is guessed; '' where nothing of it is known."""
    for mark in ("", GUESS):
        if (key := f"{mark}{name}") in row.last_numbers:
            said = units.named_numbers({key: row.last_numbers[key]}, best=row.view.best)
            return mark + said.removeprefix(f"{key} ")
    return ""


def _columns_of(name: str) -> int:
    return [column.name for column in CELLS.columns].index(name)


def _column_name(name: str | None) -> str:
    """What was guessed stands in the column of what is reported."""
    return (name or "").removeprefix(GUESS)


def _needs(shown: Shown) -> list[Need]:
    facts, private = shown.rows.facts, shown.private
    return [
        replace(need, text=private.cleaned(facts.said(need.text)))
        for need in shown.rows.short_needs
    ]


@dataclass(frozen=True)
class _Part(Generic[R]):
    """The rows of one run in a table."""

    of: Shown
    shown: Sequence[R]


def _section(
    id_: str,
    title: str,
    table: Table[R],
    parts: Sequence[_Part[R]],
    *,
    has_bars: bool = True,
) -> dict[str, Any]:
    """A table without the columns in which no row says anything, and with a sign before what it is
    of. `right` are the columns, by number, that hold numbers.
    """
    said, columns = parts[0].of.rows.facts.said, list(table.columns)
    columns = columns if table is BOXES else columns[1:]
    drawn = [
        [
            _drawn(field, column.is_right, has_bars=has_bars)
            for field, column in zip(_fields(table, row, part.of), columns, strict=True)
        ]
        for part in parts
        for row in part.shown
    ]
    kept = [
        at for at in range(len(columns)) if any(row[at]["text"] or row[at]["svg"] for row in drawn)
    ]
    named = (_named(row, n, part.of) for part in parts for n, row in enumerate(part.shown))
    return {
        "id": id_,
        "title": said(title),
        "columns": [said(columns[at].title or columns[at].name) for at in kept],
        "rows": [
            name | {"fields": [one[at] for at in kept]}
            for name, one in zip(named, drawn, strict=True)
        ],
        "right": [new for new, at in enumerate(kept) if columns[at].is_right],
        "is_folded": False,
    }


def _fields(table: Table[R], row: R, shown: Shown) -> list[Field]:
    """What the row is of stands first, with its sign."""
    fields = list(table.fields(row, shown.rows.facts))
    if table is BOXES:
        return [replace(fields[0], text=shown.of(fields[0].text)), *fields[1:]]
    sign, first, *rest = fields
    name = shown.of(first.text) if first.text else first.text
    return [Field(f"{sign.text}\u00a0{name}".strip(), sign.look), *rest]


def _named(row: Need | CellRow | BoxRow, number: int, shown: Shown) -> dict[str, str | None]:
    """By which a row is the same one after the next look, and the cell that it opens."""
    if isinstance(row, BoxRow):
        return {"id": shown.of(row.queue.name), "cell": None}
    cell = shown.of(row.cell) if row.cell else None
    return {"id": shown.of(str(number)) if isinstance(row, Need) else cell, "cell": cell}


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
