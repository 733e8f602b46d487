"""One box rented: the intent is on the disk before the call, and the call is made once.

After an answer that says nothing no second box is asked for. The provider's list is read for two
minutes, since lists lag, for the stamp of this order; a box that shows up is gone on with. One that
does not leaves its record open, and the next `up` looks again first. A box that does not come up is
ended: only by the id that this order got, and before anything of ours ran there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from boxcar.laptop.providers import calls
from boxcar.laptop.providers.gone import end_until_gone, still_bills
from boxcar.laptop.providers.provider import (
    Doubt,
    Listed,
    NoRights,
    Offer,
    Order,
    Provider,
    Refused,
    Unclear,
)
from boxcar.laptop.providers.rented_record import RentedBox, note
from boxcar.shared.errors import BoxcarError, MayStillBillError, TemporaryError, words_of
from boxcar.shared.sentence import _

LOOK_S = 120.0
POLL_S = 10.0
# How long a box may take: its image twice at the host's speed, within these, and sshd.
LEAST_BOOT_S, MOST_BOOT_S, SSHD_S = 300.0, 900.0, 120.0
IMAGE_GB = 8.0
# What a provider rounds, and a disk that is priced a little otherwise than in the search.
MARGIN = 1.05
# Of a host that will never have the image; read in its own words while it starts.
_BAD_WORDS = (
    "failed to resolve",
    "i/o timeout",
    "no such host",
    "connection refused",
    "error response from daemon",
    "manifest unknown",
    "unauthorized",
    "temporary failure in name resolution",
    "no space left",
)
Tell = Callable[[str], None]


class NotUp(BoxcarError):
    """The box cannot be used: it did not come up, or costs more than was agreed."""


class NoAnswer(NotUp):
    """It runs and has an address, and ssh got no answer there until its time was over."""


def boot_limit_s(offer: Offer, image_gb: float = IMAGE_GB) -> float:
    """Until ssh answers. An unknown speed gets the most."""
    if not offer.down_mbit_s:
        return MOST_BOOT_S + SSHD_S
    pull_s = 2 * image_gb * 8000 / offer.down_mbit_s
    return min(MOST_BOOT_S, max(LEAST_BOOT_S, pull_s)) + SSHD_S


def ask_for_box(provider: Provider, order: Order, record: RentedBox, tell: Tell) -> RentedBox:
    """The record with the new box's id. `record` lies on the disk by now.

    Raises Refused and NoRights, where nothing was rented and the record is closed, and
    MayStillBillError where nobody knows: then it stays open.
    """
    try:
        return note(record, id=provider.create(order))
    except (Refused, NoRights) as error:
        note(record, "refused_at", end_because=words_of(error))
        raise
    except Unclear as unclear:
        tell(
            _(
                "the answer is not clear ({why}). Looking for the box by its stamp for {n} s; no "
                "second one is asked for",
                why=words_of(unclear),
                n=int(LOOK_S),
            )
        )
        return find_box(provider, record, tell, hint=unclear.id, why=words_of(unclear))


def find_box(
    provider: Provider, record: RentedBox, tell: Tell, *, hint: str = "", why: str = ""
) -> RentedBox:
    """The order's box, by its stamp, on any page; `hint` is an id that an error carried.

    Raises MayStillBillError where none was seen for LOOK_S.
    """
    until_s = calls.CLOCK.now_s() + LOOK_S
    while True:
        try:
            found = _stamped(provider, record, hint)
        except (Doubt, NoRights) as error:
            found, why = None, words_of(error)
        if found is not None:
            tell(_("found it: {title} {id}", title=provider.title, id=found.id))
            return note(record, "seen_at", id=found.id)
        if calls.CLOCK.now_s() >= until_s:
            raise MayStillBillError(
                _(
                    "MAY STILL BILL: nobody knows whether {title} rented {label}{why}. Its record "
                    "is kept. Look at {console} ({click}), and repeat this command: it looks again "
                    "before it rents",
                    title=provider.title,
                    label=record.label,
                    why=_(" ({why})", why=why) if why else "",
                    console=provider.console,
                    click=_(provider.by_hand),
                )
            )
        calls.CLOCK.sleep(POLL_S)


def _stamped(provider: Provider, record: RentedBox, hint: str) -> Listed | None:
    if hint:
        box = provider.read_box(hint)
        # An error's id may be of any box, and what is found here may be ended again.
        if box is not None and box.state != "gone" and box.nonce == record.nonce:
            return box
    for box in provider.list_boxes():
        if box.nonce == record.nonce and box.state != "gone":
            return box
    return None


def wait_until_up(
    provider: Provider,
    record: RentedBox,
    limit_s: float,
    answers: Callable[[RentedBox], bool],
    tell: Tell,
) -> RentedBox:
    """The record with its address, once ssh answers there. Raises NotUp, MayStillBillError.

    `answers` asks ssh at the record's address, and may raise NotUp: another machine answers.
    """
    until_s, told = calls.CLOCK.now_s() + limit_s, ""
    doubt, kind = "", NotUp
    while True:
        try:
            box, doubt = provider.read_box(record.id), ""
        except (Doubt, NoRights) as error:
            box, doubt = None, words_of(error)
        if box is not None:
            record = _noted(record, box)
            _refuse_bad(box, record)
            kind = NotUp
            if box.state == "running" and box.has_address:
                kind = NoAnswer
                if (record.host, record.port) != (box.host, box.port):
                    record = note(record, host=box.host, port=box.port)
                if answers(record):
                    return note(record, "up_at")
            told = _told(box, told, tell)
        if calls.CLOCK.now_s() >= until_s:
            raise kind(
                _(
                    "{title} {id} did not come up within {n} minutes{doubt}",
                    title=provider.title,
                    id=record.id,
                    n=round(limit_s / 60),
                    doubt=_(" ({why})", why=doubt) if doubt else "",
                )
            )
        calls.CLOCK.sleep(POLL_S)


def _noted(record: RentedBox, box: Listed) -> RentedBox:
    """That it lives, and what it costs, once each of them is known."""
    is_new_rate = box.rate is not None and box.rate != record.rate
    if record.seen_at and not is_new_rate:
        return record
    return note(record, *([] if record.seen_at else ["seen_at"]), rate=box.rate or record.rate)


def _refuse_bad(box: Listed, record: RentedBox) -> None:
    """Raises NotUp for one that is dearer than agreed, or will never come up."""
    if box.rate is not None and box.rate > record.most_rate * 1.0001:
        raise NotUp(
            _(
                "{id} costs {rate:g} {currency} an hour, and at most {most:g} was agreed",
                id=box.id,
                rate=box.rate,
                currency=box.currency,
                most=record.most_rate,
            )
        )
    said = next((word for word in _BAD_WORDS if word in box.said.lower()), "")
    if said or box.state in ("stopped", "failed", "gone"):
        raise NotUp(
            _(
                "{id} will not come up: its state is {word}{said}",
                id=box.id,
                word=box.word,
                said=_(" ({why})", why=box.said) if box.said else "",
            )
        )


def _told(box: Listed, told: str, tell: Tell) -> str:
    now = f"{box.word} {box.said}"
    if now != told:
        said = _(" ({why})", why=box.said) if box.said else ""
        tell(_("{id}: {word}{said}", id=box.id, word=box.word, said=said))
    return now


def end_unused(
    provider: Provider, record: RentedBox, because: str, others: Collection[str], tell: Tell
) -> RentedBox:
    """The closed record of a box that never ran anything of ours. Raises MayStillBillError."""
    record = note(record, "end_asked_at", end_because=because)
    end_until_gone(provider, record.id, has_seen=bool(record.seen_at), others=others, tell=tell)
    return note(record, "gone_at")


def settle_intent(provider: Provider, record: RentedBox, tell: Tell) -> RentedBox:
    """Of an order whose answer nobody heard, because `up` was killed: found, or closed as missing
    after LOOK_S. Whoever calls this asks the person again before anything else is rented. Raises
    MayStillBillError where the provider cannot be asked.
    """
    try:
        return find_box(provider, record, tell)
    except MayStillBillError:
        # Only a list that was read to its end says that there is none.
        try:
            is_there = any(box.nonce == record.nonce for box in provider.list_boxes())
        except (Doubt, NoRights) as error:
            raise still_bills(provider, record.label, None, words_of(error)) from None
        if is_there:
            raise TemporaryError(
                _("{label} has just shown up; repeat this command", label=record.label)
            ) from None
        return note(record, "missing_at")
