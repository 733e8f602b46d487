"""The person's approval of a teardown: what will be lost and what stays, and then the run's name.

`down` asks for it, and only where it can help: nothing else is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from boxcar.laptop.common import show, units
from boxcar.laptop.hosts import folders
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.teardown.gate import (
    CONTINUED,
    GIVEN,
    TYPED,
    Approval,
    GateFacts,
    obstacles,
)
from boxcar.shared.errors import Command, Message
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.sentence import Sentence, _, mark

# How the run stands now, and the notes of its roster.
Look = Callable[[], tuple[GateFacts, Sequence[str]]]


def with_approval(
    site: Site,
    facts: GateFacts,
    notes: Sequence[str],
    begun: Teardown | None,
    approve: str | None,
    *,
    look_again: Look,
    tries: int,
) -> GateFacts:
    """The facts with the approval that there is; the person is asked only where it can help.

    `approve` is a receipt's digest that was typed as a flag, and `tries` how often the run's name
    may be typed. While somebody types much may change, so `look_again` tells how it is then.
    """
    if begun and facts.receipt and begun.digest == facts.receipt.digest:
        beside = _ask_beside(facts, tries, (*begun.beside,))
        return replace(facts, approval=Approval(CONTINUED, begun.digest, beside))
    if obstacles(facts):
        return facts
    _show_price(site, facts, notes)
    beside = _ask_beside(facts, tries)
    if approve is not None:
        return replace(facts, approval=Approval(GIVEN, approve, beside))
    if {one.run for one in facts.beside} - {*beside}:
        return facts
    run, verb = site.plan.run, site.project.profile.meter_stop.verb
    question = _("Type the run's name ({run}) to approve {verb!r}: ", run=run, verb=verb)
    typed = _ask_word(run, question, tries)
    if not typed:
        return facts
    boxes = _ask_ids(facts, tries)
    # The person took their time: all is looked at again, and what they read has to be true still.
    site.refresh()
    now, _notes = look_again()
    is_same = now.receipt is not None and now.approval_digest == facts.approval_digest
    return replace(now, approval=Approval(TYPED, typed, beside, boxes)) if is_same else now


def _ask_ids(facts: GateFacts, tries: int) -> tuple[str, ...]:
    """The boxes whose id the person typed, as they end for good; others are left to them."""
    chosen = []
    for box, id_ in facts.to_destroy.items():
        question = _(
            "Type the id of {box} ({id}) to {verb} it with all on it; Enter leaves that to you: ",
            box=box,
            id=id_,
            verb=facts.verb,
        )
        if _ask_word(id_, question, tries) == id_:
            chosen.append(box)
    return tuple(chosen)


def _ask_beside(facts: GateFacts, tries: int, named: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The other runs that the person named, who was told of each what the end of its box does."""
    for run in dict.fromkeys(one.run for one in facts.beside if one.run not in named):
        for one in facts.beside:
            if one.run == run:
                show.say(one.what)
        if (
            _ask_word(
                run, _("Type that run's name ({run}) to end the box anyway: ", run=run), tries
            )
            != run
        ):
            break
        named += (run,)
    return named


def _ask_word(word: str, question: str, tries: int) -> str:
    """What the person typed last; a slip of the fingers is asked again, where somebody sits."""
    typed = ""
    for left in reversed(range(tries)):
        typed = show.ask(question)
        if typed in ("", word) or not left or not sys.stdin.isatty():
            break
        show.say(_("expected {word}, found {typed!r}; nothing was touched", word=word, typed=typed))
    return typed


def _show_price(site: Site, facts: GateFacts, notes: Sequence[str]) -> None:
    """What will be lost, and what stays."""
    verb = site.project.profile.meter_stop
    show.say(_("{verb!r} will {does}. This will be lost:", verb=verb.verb, does=verb.does))
    for sentence in site.end_price():
        _say_item(sentence)
    show.say_of_each(("", _("  {sentence}", sentence=one)) for one in _lost(facts, notes))
    size_bytes = folders.bytes_below(site.results.root)
    show.say(
        _("This stays: {folder} ({size})", folder=site.results.root, size=units.size(size_bytes))
    )
    for sentence in site.end_keeps():
        _say_item(sentence)
    _say_data(site.project)
    for box, id_ in facts.to_destroy.items():
        _say_item(_("{box} (id {id}) ends for good", box=box, id=id_))


def _say_data(project: Project) -> None:
    """The job's data, which no end removes: only a disk that goes takes it along."""
    plan, profile = project.plan, project.profile
    names = [*plan.data, *(one.name for one in plan.data_urls)]
    stays = plan.is_data_on_tier or profile.is_this_machine
    stays = stays or profile.storage.data in profile.meter_stop.preserves
    if names and stays:
        what = (
            mark("  the job's data on the tier: {names}. To see and remove it")
            if plan.is_data_on_tier
            else mark("  the job's data on its boxes: {names}. To see and remove it")
        )
        said = Sentence(what, names=", ".join(names))
        show.say(Message(said, Command("data")))


def _lost(facts: GateFacts, notes: Sequence[str]) -> Iterator[str]:
    for verdict in facts.receipt.cells if facts.receipt else ():
        if verdict.because is not None:
            yield _(
                "cell {cell}, abandoned because {because}",
                cell=verdict.cell,
                because=verdict.because,
            )
        if verdict.is_dropped:
            yield _("cell {cell}, dropped: its line is commented out", cell=verdict.cell)
    for cell in facts.cells:
        if cell.pulled and (doubt := cell.pulled.manifest.doubt):
            yield _(
                "the box that could retrain cell {cell}, whose result is not certain: {doubt}",
                cell=cell.cell,
                doubt=doubt,
            )
    if hashed := _hashed(facts):
        yield _(
            "{n} {n:artifact that was|artifacts that were} only hashed here: verify found no "
            "torch, so only the box has loaded {n:it|them}",
            n=hashed,
        )
    yield from notes


def _say_item(sentence: str) -> None:
    show.say(_("  {sentence}", sentence=sentence))


def _hashed(facts: GateFacts) -> int:
    verdicts = facts.receipt.cells if facts.receipt else ()
    return sum(finding.is_hashed for verdict in verdicts for finding in verdict.findings)
