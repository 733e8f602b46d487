"""What always stands on the board: the head and the counts above, the next command below. Pure."""

from __future__ import annotations

from boxcar.laptop.board.focus import OVERVIEW, Focus
from boxcar.laptop.board.lines.glyphs import state_glyph
from boxcar.laptop.board.lines.line import (
    BOLD,
    DIM,
    Line,
    Span,
    cut,
    span,
    spread,
    text,
    width,
    wrapped,
)
from boxcar.laptop.board.sheet import Sheet
from boxcar.laptop.common import units

_MOST_NEXT, _SMALL = 3, 12  # lines of the next command, and of a terminal that has no room for them


def head(sheet: Sheet) -> list[Line]:
    """The run, and how many cells are in which state."""
    snapshot, facts, room = sheet.snapshot, sheet.snapshot.facts, sheet.width
    age = sheet.word("looked", age=units.about(snapshot.looked_s))
    boxes = sheet.word("boxes", n=len(snapshot.boxes))
    between = f" {facts.glyphs.between} "
    # The first that fits: how old all of it is says more than the time of the day.
    words = [facts.profile, boxes, snapshot.clock, age]
    choices = [words, [facts.profile, boxes, age], [boxes, age], [age], []]
    money: Line = (Span(snapshot.money, BOLD),) if snapshot.money else ()
    left: Line = ()
    for chosen in choices:
        left = (span(snapshot.run, BOLD), *(Span(f"{between}{one}") for one in chosen))
        if width(left) + (width(money) + 2 if money else 0) <= room:
            break
    return [spread(left, money, room, facts.glyphs.mark), _counts(sheet)]


def _counts(sheet: Sheet) -> Line:
    snapshot, room, glyphs = sheet.snapshot, sheet.width, sheet.snapshot.facts.glyphs
    total: Line = (Span(f"{sheet.word('cells')} {snapshot.cells}", BOLD),)
    left_s = snapshot.left_s
    left = (Span(sheet.word("left", time=units.about(left_s))),) if left_s else ()
    full, short = total, total
    for state, number in snapshot.counts:
        sign, look = state_glyph("synced" if state == "settling" else state, glyphs)
        full = (*full, Span("   "), Span(f"{sign} {number} {sheet.word(state)}", look))
        short = (*short, Span(" "), Span(f"{sign}{number}", look))
    fits = width(full) <= room
    return spread(full if fits else short, left, room, glyphs.mark)


def title(sheet: Sheet, name: str) -> Line:
    """`── needs you ─────`."""
    rule, room = sheet.snapshot.facts.glyphs.rule, sheet.width
    line = (Span(f"{rule}{rule} ", DIM), Span(name, BOLD), Span(" ", DIM))
    rest = Span(rule * max(0, room - width(line)), DIM)
    return cut((*line, rest), room, sheet.snapshot.facts.glyphs.mark)


def foot(sheet: Sheet, height: int | None) -> list[Line]:
    """The next command with its reason, and the keys."""
    lines, room = _next(sheet, height), sheet.width
    if sheet.focus is None:
        return lines
    keys = _keys(sheet, sheet.focus)
    if len(lines) == 1 and width(lines[0]) + width(keys) + 2 <= room:
        return [spread(lines[0], keys, room, sheet.snapshot.facts.glyphs.mark)]
    return [*lines, keys]


def _next(sheet: Sheet, height: int | None) -> list[Line]:
    facts, room = sheet.snapshot.facts, sheet.width
    because = facts.because
    most = _MOST_NEXT if height is None or height > _SMALL else 2
    if not facts.next:
        return [(span(one, BOLD),) for one in wrapped(because, room, most, facts.glyphs.mark)]
    command = sheet.word("next", command=facts.next)
    said = sheet.word("why", command=command, because=because) if because else command
    lines = wrapped(said, room, most, facts.glyphs.mark)
    left = len(command)
    drawn: list[Line] = []
    for line in lines:
        bold, rest = line[: max(0, left)], line[max(0, left) :]
        drawn.append(tuple(one for one in (span(bold, BOLD), span(rest)) if one.text))
        left -= len(line) + 1
    return drawn


def _keys(sheet: Sheet, focus: Focus) -> Line:
    if focus.is_typing:
        typed = sheet.word("filter", text=f"{focus.filter}_")
        return cut((span(typed, BOLD),), sheet.width, sheet.snapshot.facts.glyphs.mark)
    is_overview = focus.shown == OVERVIEW and not focus.filter
    name = "keys_in_cell" if focus.opened else "keys" if is_overview else "keys_in_list"
    for key in (name, "keys_short"):
        line = (Span(sheet.word(key), DIM),)
        if width(line) <= sheet.width:
            return line
    return ()


def plain_lines(lines: list[Line]) -> list[str]:
    """Without looks and without blanks at the ends."""
    return [text(line).rstrip() for line in lines]
