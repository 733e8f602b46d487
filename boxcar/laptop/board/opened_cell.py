"""One cell over the whole height: how it stands, and the end of its log or what happened to it."""

from __future__ import annotations

from boxcar.laptop.board.focus import HISTORY, Focus
from boxcar.laptop.board.frame import title
from boxcar.laptop.board.lines.glyphs import state_glyph
from boxcar.laptop.board.lines.line import BOLD, Line, Span, cut, span, wrapped
from boxcar.laptop.board.sheet import Sheet
from boxcar.shared.record import dataclass

_MOST_FACTS = 4


@dataclass(frozen=True)
class OpenedCell:
    """`facts` and `history` are sentences. `log` is None as long as nobody has read it, and empty
    where there is none.
    """

    cell: str
    state: str
    facts: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    log: tuple[str, ...] | None = None


def opened_cell_lines(sheet: Sheet, opened: OpenedCell, focus: Focus, room: int) -> list[Line]:
    top = [*_head(sheet, opened), title(sheet, sheet.word(focus.page))]
    body = _body(sheet, opened, focus)
    left = max(0, room - len(top))
    # From the end, as far back as was asked for and there is.
    end = len(body) - min(focus.back, max(0, len(body) - left))
    return [*top, *body[max(0, end - left) : end]][: max(0, room)]


def _head(sheet: Sheet, opened: OpenedCell) -> list[Line]:
    glyphs, width = sheet.snapshot.facts.glyphs, sheet.width
    sign, look = state_glyph(opened.state, glyphs)
    name = (Span(f"{sign} ", look), span(opened.cell, BOLD), span(f"  {opened.state}", look))
    facts = [
        (span(f"  {line}"),)
        for fact in opened.facts[:_MOST_FACTS]
        for line in wrapped(fact, width - 2, 3, glyphs.mark)
    ]
    return [cut(name, width, glyphs.mark), *facts]


def _body(sheet: Sheet, opened: OpenedCell, focus: Focus) -> list[Line]:
    if focus.page == HISTORY:
        told = opened.history
    elif opened.log is None:
        return [sheet.dim(sheet.word("asking"))]
    else:
        told = opened.log
    if not told:
        return [sheet.dim(sheet.word("no_log" if focus.page != HISTORY else "nothing"))]
    mark = sheet.snapshot.facts.glyphs.mark
    # Only what may be seen is wrapped: a log may have thousands of lines.
    newest = told[-(focus.back + 500) :]
    return [
        (span(part),) for line in newest for part in wrapped(span(line).text, sheet.width, 20, mark)
    ]
