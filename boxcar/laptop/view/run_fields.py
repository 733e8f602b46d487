"""What stands in the columns of the board, on a terminal as on the page: boxes, cells, needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from boxcar.laptop.common import units
from boxcar.laptop.run.state_words import condition_sentence, state_sentence
from boxcar.laptop.view.looks import BAD, BUSY, DIM, WARN, Bars, state_glyph
from boxcar.laptop.view.needs import Need, is_broken, needs_person
from boxcar.laptop.view.run_rows import BoxRow, CellRow, Facts
from boxcar.shared.news.wanted import IDLE_PERCENT
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

R = TypeVar("R", bound=Need | CellRow | BoxRow)


@dataclass(frozen=True)
class Column:
    """`keep` is how late it drops from a narrow terminal: the column with the least goes first, and
    one of 0 is never there. It shrinks down to `least` columns where that is given; a name in its
    middle, numbers by whole ones, other text at its end. `name` is what stands above it where there
    is room for words.
    """

    title: str
    keep: int
    least: int | None = None
    is_name: bool = False
    are_numbers: bool = False
    is_right: bool = False
    name: str = ""


@dataclass(frozen=True)
class Field:
    """`look` is any of the words of `looks`; `bars` are drawn in place of the text."""

    text: str = ""
    look: str = ""
    bars: Bars | None = None


@dataclass(frozen=True)
class Table(Generic[R]):
    """Columns, and the fields of a row in their order."""

    columns: tuple[Column, ...]
    fields: Callable[[R, Facts], Sequence[Field]]


def _box_fields(row: BoxRow, facts: Facts) -> Sequence[Field]:
    beat, age_s = row.beat, row.heartbeat_age_s
    return (
        Field(row.box),
        Field(look=BUSY, bars=row.half_hour),
        _gpu_percent(row, facts),
        Field(row.memory),
        _what_it_is_at(row, facts),
        Field(row.work.epochs_done if row.work and beat else ""),
        Field(units.about(row.work_left_s) if row.work_left_s and beat else ""),
        Field(units.about(age_s) if age_s is not None and beat else ""),
    )


def _gpu_percent(row: BoxRow, facts: Facts) -> Field:
    if row.gpu_percent is None:
        return Field()
    is_low = row.gpu_percent < IDLE_PERCENT and row.cell is not None
    sign = facts.glyphs.trouble if is_low else " "
    return Field(f"{row.gpu_percent:.0f} %{sign}", WARN if is_low else "")


def _what_it_is_at(row: BoxRow, facts: Facts) -> Field:
    """The cell; of a box that is not simply at work how it is instead."""
    word = row.queue.condition.word
    if word == "running" and row.cell:
        beside = len(row.beat.at_work) - 1 if row.beat else 0
        return Field(f"{row.cell} +{beside}" if beside > 0 else row.cell)
    told = facts.said(_("between two cells") if word == "running" else condition_sentence(word))
    if not needs_person(word):
        return Field(f"({told})", DIM)
    if is_broken(word):
        return Field(f"{facts.glyphs.failed} {told}", BAD)
    return Field(f"{facts.glyphs.trouble} {told}", WARN)


BOXES = Table(
    (
        Column(_("box"), keep=9, least=6, is_name=True),
        Column(_("30 min"), keep=3),
        Column(_("GPU"), keep=6, is_right=True),
        Column(_("mem"), keep=4, is_right=True),
        Column(_("cell"), keep=8, least=10, is_name=True),
        Column(_("epoch"), keep=7, is_right=True),
        Column(_("left"), keep=5, is_right=True),
        Column(_("heartbeat"), keep=2, is_right=True),
    ),
    _box_fields,
)


def _cell_fields(row: CellRow, facts: Facts) -> Sequence[Field]:
    sign, look = state_glyph(row.view.word, facts.glyphs)
    return (
        Field(sign, look),
        Field(row.cell),
        Field(state_words(row, facts), look),
        Field(row.headline),
        Field(look=BUSY, bars=Bars(row.curve)),
        Field(row.numbers),
        Field(row.view.epochs_done),
        Field(row.view.speed, DIM),
        Field(_left(row, facts)),
        Field(look=BUSY, bars=row.gpu_percent),
        Field(look=BUSY, bars=row.memory_percent),
        Field(units.duration(row.view.seconds) if row.view.seconds else "", DIM),
        Field(row.view.box, DIM),
    )


def _left(row: CellRow, facts: Facts) -> str:
    if not row.left_s:
        return ""
    return facts.said(_("{time} left", time=units.about(row.left_s)))


def _cell_fields_below_title(row: CellRow, facts: Facts) -> Sequence[Field]:
    """Without what the title of its group says."""
    fields = _cell_fields(row, facts)
    is_said = row.view.word in ("running", "verified", "queued") and not row.why
    if is_said and row.view.accepted is None:
        return (*fields[:2], Field(), *fields[3:])
    return fields


def state_words(row: CellRow, facts: Facts) -> str:
    """The word of its state, with why it is so, or how far the copy of its result is."""
    if row.view.accepted is not None:
        return facts.said(_("accepted"))
    if row.view.is_verified and row.why:
        return facts.said(_("not certain: {doubt}", doubt=row.why))
    counted = facts.said(state_sentence(row.counted_as))
    if row.copied is None:
        return f"{counted} {row.why}".strip()
    percent, left_s = row.copied
    time = units.about(left_s)
    return facts.said(
        _("{what} {percent} %, {time} left", what=counted, percent=percent, time=time)
    )


_CELL_COLUMNS = (
    Column("", keep=9),
    Column(_("cell"), keep=8, least=10, is_name=True),
    Column("", keep=7, name=_("state")),
    Column("", keep=6, name=_("number")),
    Column("", keep=5, name=_("curve")),
    Column("", keep=3, least=10, are_numbers=True, name=_("other numbers")),
    Column(_("epoch"), keep=5, is_right=True),
    Column(_("speed"), keep=2, is_right=True),
    Column("", keep=4, is_right=True, name=_("left")),
    # On a terminal nothing would say what these two rows of bars are.
    Column(_("GPU"), keep=0),
    Column(_("mem"), keep=0),
    Column("", keep=2, is_right=True, name=_("time")),
    Column(_("box"), keep=1, least=6, is_name=True),
)
CELLS = Table(_CELL_COLUMNS, _cell_fields)
CELLS_BELOW_TITLE = Table(_CELL_COLUMNS, _cell_fields_below_title)


def _need_fields(need: Need, facts: Facts) -> Sequence[Field]:
    look = DIM if need.is_quiet else BAD if need.is_broken else WARN
    sign = facts.glyphs.failed if need.is_broken else facts.glyphs.trouble
    return (
        Field(sign, look),
        Field(facts.said(need.who)),
        Field(need.where, DIM),
        Field(need.epoch),
        Field(facts.said(need.text), DIM if need.is_quiet else ""),
    )


NEEDS = Table(
    (
        Column("", keep=9),
        Column("", keep=8, least=10, is_name=True, name=_("cell or box")),
        Column("", keep=2, least=6, is_name=True, name=_("box")),
        Column("", keep=1, is_right=True, name=_("epoch")),
        Column("", keep=7, least=12, name=_("what happened")),
    ),
    _need_fields,
)
