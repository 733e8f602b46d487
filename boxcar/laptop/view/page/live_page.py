"""The page of one look at a run: one file, with a script of its own that only asks for it again."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.view.board.needs_you import Need
from boxcar.laptop.view.board.snapshot import Snapshot
from boxcar.laptop.view.board.terminal_lines import UNICODE, state_glyph, word
from boxcar.laptop.view.page import cell_curves
from boxcar.laptop.view.page.cell_curves import Reports
from boxcar.laptop.view.page.sections import Private, sections
from boxcar.laptop.view.report import chart
from boxcar.laptop.view.report.report_page import html, legend
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.record import dataclass

_HERE = Path(__file__).parent
TEMPLATE, SCRIPT = _HERE / "live_page.html.j2", _HERE / "live_page.js"


@dataclass(frozen=True)
class Reading:
    """How often whoever reads the page asks for it again, and from which age it is called old."""

    every_s: float
    old_s: float


def page(snapshot: Snapshot, at: str, reports: Reports, reading: Reading, private: Private) -> str:
    """The whole file, of a look at that moment (UTC). Its words are in the snapshot's language."""
    shown, script = _private(snapshot, private), SCRIPT.read_text(encoding="utf-8")
    language, made = shown.facts.language, sections(shown)
    before_all = [section.id for section in made if not section.is_folded]
    return html(
        TEMPLATE,
        **_head(shown, at),
        language=language,
        script=script,
        script_digest=_digest(script),
        every_s=reading.every_s,
        old_s=reading.old_s,
        ago=_said("ago", language),
        gone=_said("gone", language),
        sections=made,
        charts=_charts(shown, reports),
        charts_after=before_all[-1] if before_all else "",
    )


def _head(snapshot: Snapshot, at: str) -> dict[str, Any]:
    facts, language = snapshot.facts, snapshot.facts.language
    moment = timestamp.parse_utc(at)
    boxes = word("boxes", language, n=len(snapshot.boxes))
    left = word("left", language, time=units.about(snapshot.left_s)) if snapshot.left_s else ""
    return {
        "title": snapshot.run,
        "about": f"{facts.profile} · {boxes}",
        "at": at,
        "looked": moment.astimezone().strftime("%Y-%m-%d %H:%M:%S %z"),
        "money": snapshot.money,
        "cells": f"{word('cells', language)} {snapshot.cells}",
        "counts": [_count(state, number, language) for state, number in snapshot.counts],
        "left": left,
        "next": word("next", language, command=facts.next) if facts.next else "",
        "because": facts.because,
    }


def _count(state: str, number: int, language: str) -> dict[str, str]:
    sign, look = state_glyph("synced" if state == "settling" else state, UNICODE)
    return {"text": f"{sign} {number} {word(state, language)}", "look": look}


def _charts(snapshot: Snapshot, reports: Reports) -> list[dict[str, Any]]:
    """One for each number that the cells report; those at work come first."""
    rows = (*snapshot.under_way, *snapshot.done, *snapshot.failed)
    drawn = cell_curves.drawn(reports, [row.cell for row in rows], snapshot.facts.metrics)
    return [
        {
            "title": key,
            "svg": chart.lines(
                found.curves, found.x_name(snapshot.facts.language), key, found.looks
            ),
            "legend": legend(found.curves, found.looks),
        }
        for key, found in drawn.items()
    ]


def _private(snapshot: Snapshot, private: Private) -> Snapshot:
    """The same with nothing private in what a script, a library or ssh has said."""

    def of_needs(needs: Sequence[Need]) -> tuple[Need, ...]:
        return tuple(replace(need, text=private.cleaned(need.text)) for need in needs)

    facts = replace(snapshot.facts, because=private.cleaned(snapshot.facts.because))
    short = of_needs(snapshot.short_needs)
    return replace(snapshot, facts=facts, needs=of_needs(snapshot.needs), short_needs=short)


def _digest(script: str) -> str:
    """As a policy names what may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _said(name: str, language: str) -> str:
    return Sentence(f"live_page.{name}").said(language)
