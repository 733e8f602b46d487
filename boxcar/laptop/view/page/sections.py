"""The tables of the page: what needs a person, the boxes, the cells at work, all cells. Pure.

They hold what the board of the terminal holds, without its fear of a ninth row.
"""

from __future__ import annotations

import re
from dataclasses import replace

from boxcar.laptop.common import units
from boxcar.laptop.view.board.box_rows import AT_EASE, BoxRow
from boxcar.laptop.view.board.cell_rows import CellRow, state_words
from boxcar.laptop.view.board.history import SPAN_S
from boxcar.laptop.view.board.needs_you import Need
from boxcar.laptop.view.board.snapshot import Snapshot
from boxcar.laptop.view.board.terminal_lines import (
    BAD,
    DIM,
    UNICODE,
    WARN,
    condition_word,
    in_order,
    over_time,
    state_glyph,
    word,
)
from boxcar.laptop.view.report import chart
from boxcar.shared.known_secrets import LEFT_OUT, NONE_KNOWN, KnownSecrets
from boxcar.shared.record import dataclass

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


_MINUTES, _POINTS = 30, 60  # of a GPU's half hour, and of a cell's curve


@dataclass(frozen=True)
class Field:
    """`look` is a word of the board's lines; `svg` is drawn instead of the text."""

    text: str = ""
    look: str = ""
    svg: str = ""


@dataclass(frozen=True)
class Section:
    """A table with its title; one that is folded shows its title alone until somebody opens it.
    `left` are the columns, by number, that hold words.
    """

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]
    left: tuple[int, ...] = (0,)
    is_folded: bool = False


def sections(snapshot: Snapshot) -> list[Section]:
    """Those that have a row."""
    made = [_needs(snapshot), _boxes(snapshot), _under_way(snapshot), _all(snapshot)]
    return [one for one in made if one.rows]


def _needs(snapshot: Snapshot) -> Section:
    language = snapshot.facts.language
    rows = tuple(_need(need) for need in snapshot.short_needs)
    empty = Section("needs", word("needs_you", language), ("",) * 4, rows, left=(0, 1, 2, 3))
    return _without_empty(empty)


def _need(need: Need) -> tuple[Field, ...]:
    look = DIM if need.is_quiet else BAD if need.is_broken else WARN
    sign = UNICODE.failed if need.is_broken else UNICODE.trouble
    return (
        Field(f"{sign} {need.who}".strip(), look),
        Field(need.where),
        Field(need.epoch),
        Field(need.text, DIM if need.is_quiet else ""),
    )


def _boxes(snapshot: Snapshot) -> Section:
    language = snapshot.facts.language
    names = ("box", "half_hour", "gpu", "memory", "cell", "epoch", "left_title", "heartbeat")
    rows = tuple(_box(row, language) for row in snapshot.boxes)
    title = word("boxes_title", language, n=len(rows))
    return _without_empty(
        Section("boxes", title, tuple(word(name, language) for name in names), rows, left=(0, 1, 4))
    )


def _box(row: BoxRow, language: str) -> tuple[Field, ...]:
    gpu = chart.spark(over_time(row.gpu, SPAN_S, _MINUTES), 0.0, 100.0)
    percent = "" if row.gpu_percent is None else f"{row.gpu_percent:.0f} %"
    age_s = row.heartbeat_age_s
    return (
        Field(row.box),
        Field(svg=gpu),
        Field(percent, WARN if row.is_idle else ""),
        Field(row.memory),
        _at(row, language),
        Field(row.epoch),
        Field(units.about(row.left_s) if row.left_s else ""),
        Field("" if age_s is None else units.about(age_s)),
    )


def _at(row: BoxRow, language: str) -> Field:
    """The cell; of a box that is not simply at work how it is instead."""
    if row.condition == "running" and row.cell:
        return Field(row.cell)
    told = condition_word(row.condition, language)
    is_well = row.condition in AT_EASE
    return Field(told if is_well else f"{UNICODE.trouble} {told}", DIM if is_well else WARN)


def _under_way(snapshot: Snapshot) -> Section:
    language = snapshot.facts.language
    rows = tuple(_cell(row, language) for row in snapshot.under_way)
    return _cells("running", word("running_title", language), rows, language)


def _all(snapshot: Snapshot) -> Section:
    """Each cell once, in the order in which they need somebody."""
    language = snapshot.facts.language
    every = (*snapshot.failed, *snapshot.under_way, *snapshot.done, *snapshot.queued)
    rows = tuple(_cell(row, language) for row in every)
    title = f"{word('cells', language)} ({len(rows)})"
    return _cells("cells", title, rows, language, is_folded=True)


def _cells(
    id: str, title: str, rows: tuple[tuple[Field, ...], ...], language: str, is_folded: bool = False
) -> Section:
    names = ("cell", "", "", "", "", "epoch", "", "box")
    titles = tuple(word(name, language) if name else "" for name in names)
    return _without_empty(Section(id, title, titles, rows, (0, 1, 2, 4, 7), is_folded))


def _cell(row: CellRow, language: str) -> tuple[Field, ...]:
    sign, look = state_glyph(row.state, UNICODE)
    return (
        Field(f"{sign} {row.cell}", look),
        Field(_state(row, language), look),
        Field(row.headline),
        Field(svg=chart.spark(in_order(row.curve, _POINTS))),
        Field(row.numbers),
        Field(row.epoch),
        Field(units.duration(row.seconds) if row.seconds else ""),
        Field(row.box),
    )


def _state(row: CellRow, language: str) -> str:
    if row.is_accepted:
        return word("accepted", language)
    return state_words(row, language)


def _without_empty(section: Section) -> Section:
    """Without the columns in which no row says anything."""
    width = range(len(section.columns))
    kept = [at for at in width if any(row[at].text or row[at].svg for row in section.rows)]
    return replace(
        section,
        columns=tuple(section.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in section.rows),
        left=tuple(new for new, at in enumerate(kept) if at in section.left),
    )
