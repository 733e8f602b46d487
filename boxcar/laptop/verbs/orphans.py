"""`invoke orphans`: boxes that bill and belong to no run that goes on, by the providers' own lists.

One is ended only by its id, typed. A stranger's box is counted, and never touched.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from boxcar.laptop.common import show
from boxcar.laptop.providers import known
from boxcar.laptop.providers.gone import end_until_gone
from boxcar.laptop.providers.provider import Doubt, Provider
from boxcar.laptop.providers.rented_record import RentedBox, live_records, note, read_records
from boxcar.laptop.providers.whose import OwnBox, Whose, sort_boxes
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    MayStillBillError,
    Message,
    message_of,
)
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, known_word, mark

COLUMNS = (_("platform"), _("id"), "state", "GPU", _("per hour"), "run", "box", "why")
_STATES = (mark("starting"), mark("running"), mark("stopped"), mark("failed"), mark("unknown"))


@dataclass(frozen=True)
class Account:
    """What one provider says by one key. `problem`: why it says nothing."""

    provider: str
    ours: tuple[OwnBox, ...] = ()
    strangers: int = 0
    problem: str | None = None


def orphans(*, end: str = "", as_json: bool = False) -> int:
    """Returns 1 where there is one, 75 where a provider could not be asked or an end is not
    confirmed. Raises InputError for an `end` that is not ours to end.
    """
    records, damaged = read_records()
    for damage in damaged:
        show.say(message_of(damage))
    providers = _with_key(records)
    if end:
        return _end_one(providers, records, end)
    accounts = [_look(one, records) for one in providers]
    if as_json:
        show.json_document("orphans", {"accounts": accounts})
    else:
        _show(accounts)
    if any(one.problem for one in accounts):
        return exit_codes.TEMPORARY
    return 1 if any(box.is_orphan for one in accounts for box in one.ours) else 0


def _with_key(records: Sequence[RentedBox]) -> list[Provider]:
    """Those whose key is here. Raises InputError where nothing can be asked, or a record says that
    something may bill at one whose key is missing.
    """
    names = [name for name in known.PROVIDERS if known.has_key(name)]
    lacking = {one.provider for one in live_records(records)} - {*names}
    if lacking or not names:
        for name in sorted(lacking) or known.PROVIDERS:
            known.open_provider(name)  # raises, with what to type
    return [known.open_provider(name) for name in names]


def _of_account(provider: Provider, records: Sequence[RentedBox]) -> list[RentedBox]:
    """Records of another account's key are not this one's to be missed."""
    return [
        one
        for one in records
        if one.provider == provider.name and one.key == provider.access.fingerprint
    ]


def _whose(provider: Provider, records: Sequence[RentedBox]) -> Whose:
    with show.waiting(_("asking {title}", title=provider.title)):
        return sort_boxes(provider.list_boxes(), _of_account(provider, records))


def _look(provider: Provider, records: Sequence[RentedBox]) -> Account:
    try:
        whose = _whose(provider, records)
    except BoxcarError as error:
        return Account(provider.name, problem=message_of(error).text)
    for one in whose.unlisted:
        if not one.id:
            show.say(
                _(
                    "{box} of {run}: nobody knows whether {label} was rented; {title} does not "
                    "list it, and lists lag. Look again in two minutes, or type `up`, which looks",
                    box=one.box,
                    run=one.run,
                    label=one.label,
                    title=provider.title,
                )
            )
            continue
        show.say(
            _(
                "{box} of {run}: {title} does not list {id}; it may have been ended elsewhere. To "
                "be sure: {command}",
                box=one.box,
                run=one.run,
                title=provider.title,
                id=one.id,
                command=str(Command("orphans", ("--end", one.id))),
            )
        )
    return Account(provider.name, whose.ours, whose.strangers)


def _show(accounts: Sequence[Account]) -> None:
    rows = [_row(box) for account in accounts for box in account.ours]
    show.table(_("boxes of yours"), COLUMNS, rows, names=(_("id"), "run"))
    for one in accounts:
        title = known.PROVIDERS[one.provider].title
        if one.problem:
            show.alarm(one.problem)  # which names it
            continue
        n = sum(box.is_orphan for box in one.ours)
        show.say(
            _(
                "{title}: {n} {n:orphan|orphans}, {used} in use or of another machine, {strangers} "
                "of strangers (not touched)",
                title=title,
                n=n,
                used=len(one.ours) - n,
                strangers=one.strangers,
            )
        )
        for box in one.ours:
            if box.is_orphan:
                show.say(Message(_("To end it"), Command("orphans", ("--end", box.id))))


def _row(box: OwnBox) -> Sequence[object]:
    rate = f"{box.rate:g} {box.currency}" if box.rate is not None else "?"
    return (
        box.provider,
        box.id,
        known_word(box.state, _STATES),
        box.gpu,
        rate,
        box.run,
        box.box or "-",
        box.why,
    )


# --- the end of one


def _end_one(providers: Sequence[Provider], records: Sequence[RentedBox], id: str) -> int:
    for provider in providers:
        own = _of_account(provider, records)
        try:
            whose = _whose(provider, records)
        except Doubt as doubt:
            show.alarm(message_of(doubt))
            return exit_codes.TEMPORARY
        box = next((one for one in whose.ours if one.id == id), None)
        record = next((one for one in own if id in (one.id, box and one.id)), None)
        if box is None and (record is None or record.state == "closed"):
            continue
        if box is not None:
            _refuse_or_ask(box)
        return _end(provider, id, record or _record_of(box, own), own)
    raise InputError(
        _(
            "{id}: no provider whose key is here lists it as a box of yours. A box without "
            "Boxcar's stamp is a stranger's: end it in the provider's console. To see yours",
            id=id,
        ),
        Command("orphans"),
    )


def _record_of(box: OwnBox | None, own: Sequence[RentedBox]) -> RentedBox | None:
    """The order that a box without an answer came from."""
    named = [one for one in own if box is not None and one.label == box.label and not one.id]
    return named[0] if named else None


def _refuse_or_ask(box: OwnBox) -> None:
    """Raises InputError for a box at work, and for one of another machine without a yes."""
    if box.is_here and not box.is_orphan:
        raise InputError(
            _(
                "{id} is {box} of the run {run}, which uses it. Its end is that of the run",
                id=box.id,
                box=box.box,
                run=box.run,
            ),
            Command("down"),
        )
    if box.is_here:
        return
    if sys.stdin.isatty():
        said = show.ask(
            _(
                "{id} ({label}) was rented from another machine, where it may be at work; all on "
                "it is lost. Type its id again to end it: ",
                id=box.id,
                label=box.label,
            )
        )
        if said == box.id:
            return
    raise InputError(
        _(
            "{id} was rented from another machine: end it there, or type this on a terminal, which "
            "asks. Nothing was touched",
            id=box.id,
        )
    )


def _end(provider: Provider, id: str, record: RentedBox | None, own: Sequence[RentedBox]) -> int:
    others = [one.id for one in live_records(own) if one.id and one.id != id]
    if record is not None:
        record = note(record, "end_asked_at", id=id, end_because=record.end_because or "orphans")
    try:
        with show.waiting(_("ending {id}, and looking until it is gone", id=id)):
            has_seen = bool(record and record.seen_at)
            end_until_gone(provider, id, has_seen=has_seen, others=others, tell=show.say)
    except MayStillBillError as error:
        show.alarm(message_of(error))
        return exit_codes.TEMPORARY
    if record is not None:
        note(record, "gone_at")
    show.line(_("{title}: {id} is gone, seen twice", title=provider.title, id=id))
    return 0
