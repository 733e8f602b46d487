"""What `status` and `watch` tell the board besides the view, and on which terminals it is drawn."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TextIO

from boxcar.laptop.board.history import NOTHING_SEEN, seen
from boxcar.laptop.board.layout import layout
from boxcar.laptop.board.lines import glyphs
from boxcar.laptop.board.lines.words import word
from boxcar.laptop.board.needs_you import Quiet
from boxcar.laptop.board.snapshot import Facts, snapshot, webhooks_off
from boxcar.laptop.common import show
from boxcar.laptop.common.language import language_of
from boxcar.laptop.project.project import box_prices
from boxcar.laptop.run.view import RunView
from boxcar.laptop.sites.site import Site
from boxcar.laptop.verbs.next_step import NextStep, next_step
from boxcar.shared.message import Command, Message


def is_board(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a board can be drawn there: lines are for pipes, for screen readers, and for whoever
    wants no colours.
    """
    is_plain = environ.get("TERM", "dumb") in ("dumb", "unknown", "") or environ.get("NO_COLOR")
    return stream.isatty() and not is_plain


def board_facts(
    site: Site,
    view: RunView,
    step: NextStep,
    *,
    at_work: str = "",
    notes: tuple[str, ...] = (),
) -> Facts:
    """From the project and the next step. `at_work`: what a board that is looked at all the time
    says in place of "watch". `notes` is what was said since.
    """
    project, language = site.project, language_of("", os.environ)
    command, because = _next(step, language, at_work)
    return Facts(
        profile=project.plan.profile,
        next=command,
        because=because,
        see_all=f"{show.typed(Command('status'))} | less",
        metrics=tuple(metric.name for metric in project.plan.metrics),
        prices=tuple(box_prices(project).items()),
        quiet=_quiet(site, view, language, notes),
        language=language,
        glyphs=glyphs.glyphs_of_terminal(sys.stdout.encoding, os.environ),
    )


def _next(step: NextStep, language: str, at_work: str) -> tuple[str, str]:
    """The command and why. To say "next: watch" on a board that is one would be of no help."""
    if not at_work or step.command != Command("watch"):
        return show.typed(step.command) if step.command else "", show.typed(step.because)
    if isinstance(step.because, Message) and step.because.command:
        return show.typed(step.because.command), show.typed(step.because.text)
    return "", show.typed(at_work)


def _quiet(site: Site, view: RunView, language: str, said: tuple[str, ...]) -> Quiet:
    profile = site.project.profile
    off = webhooks_off(site.project.job, view, os.environ)
    notes = said if off is None else (*said, webhooks_sentence(off, language))
    return Quiet(
        clocks=tuple(clock.said(language) for clock in profile.clocks.dangers),
        clock_command=show.typed(Command("explain", ("--profile", profile.name))),
        notes=notes,
    )


def draw_once(site: Site, view: RunView, looked_s: float = 0.0) -> None:
    """The board of one look, which was so long ago, as long as it needs to be."""
    from rich.console import Console  # late, as in show.py

    from boxcar.laptop.board.lines.paint import painted

    known = board_facts(site, view, next_step(view, site))
    found = replace(snapshot(view, seen(NOTHING_SEEN, view), known), looked_s=looked_s)
    console = Console(file=sys.stdout, highlight=False)
    for line in layout(found, console.width):
        console.print(painted(line), end="\n")


def webhooks_sentence(off: str, language: str) -> str:
    """`off` is the variable that is not set, or '' where nobody knows any more."""
    if off:
        return word("webhooks_off", language, name=off)
    return word("webhooks_off_at_launch", language)
