"""A box is gone when its provider says so twice, 30 seconds apart, to a key that has seen it alive.

One look asks by the id and reads the list to its last page; both must have no such box. An answer
to an end proves nothing: a 200 may have done nothing, and a box may come back. Until it is proven,
a box bills, and MayStillBillError says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from boxcar.laptop.providers import calls
from boxcar.laptop.providers.provider import Doubt, Listed, NoRights, Provider
from boxcar.shared.errors import BoxcarError, MayStillBillError, words_of
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, mark

APART_S = 30.0
POLL_S = 10.0
# An end is asked for again when the box is still there after so long.
AGAIN_S = 60.0
MOST_S = 600.0

_NOTHING = mark("The provider lists it still")


@dataclass(frozen=True)
class Look:
    """`box` is None where the provider has none; `doubt` is why nothing is known."""

    box: Listed | None = None
    doubt: str = ""

    @property
    def is_gone(self) -> bool:
        return self.box is None and not self.doubt


def look_at_box(provider: Provider, id: str, others: Collection[str] = ()) -> Look:
    """By its id and in the whole list. `others`: ids that are known to live, so that an empty list
    is no answer.
    """
    try:
        box = provider.read_box(id)
        if box is not None and box.state != "gone":
            return Look(box)
        listed = {one.id: one for one in provider.list_boxes() if one.state != "gone"}
    except (Doubt, NoRights) as error:
        return Look(doubt=words_of(error))
    if id in listed:
        return Look(listed[id])
    if not listed and set(others) - {id}:
        said = _("{title} lists no box at all, though others live", title=provider.title)
        return Look(doubt=said)
    return Look()


def end_until_gone(
    provider: Provider,
    id: str,
    *,
    has_seen: bool,
    others: Collection[str] = (),
    tell: Callable[[str], None] = lambda text: None,
    may_end: bool = True,
) -> None:
    """Ask for its end, and look until it is gone. Raises MayStillBillError.

    `may_end`: a person agreed to its end. Else it is only looked at, and one that is there after
    all stays: a list that lacked it was not up to date. `has_seen`: whether this key has seen it
    alive before; else it must see it now.
    """
    until_s = calls.CLOCK.now_s() + MOST_S
    gone_s: float | None = None
    asked_s, refusal = float("-inf"), ""
    while True:
        look, now_s = look_at_box(provider, id, others), calls.CLOCK.now_s()
        if look.is_gone:
            if not has_seen:
                raise still_bills(provider, id, None, _never_seen(provider))
            if gone_s is not None and now_s - gone_s >= APART_S:
                return
            if gone_s is None:
                gone_s = now_s
                tell(_looks_again(provider, id))
        else:
            gone_s = None
            has_seen = has_seen or look.box is not None
            if look.box is not None and not may_end:
                raise still_bills(provider, id, look.box, "")
            if look.box is not None and now_s - asked_s >= AGAIN_S:
                asked_s, refusal = now_s, _ask(lambda: provider.end_box(id))
        if now_s >= until_s:
            raise still_bills(provider, id, look.box, look.doubt or refusal)
        calls.CLOCK.sleep(APART_S if look.is_gone else POLL_S)


def stop_until_stopped(provider: Provider, id: str) -> Listed:
    """Ask for its stop, and look until it was seen stopped twice. Raises MayStillBillError."""
    until_s = calls.CLOCK.now_s() + MOST_S
    stopped_s: float | None = None
    asked_s, refusal = float("-inf"), ""
    while True:
        look, now_s = look_at_box(provider, id), calls.CLOCK.now_s()
        if look.box is not None and look.box.state == "stopped" and not look.box.is_outbid:
            if stopped_s is not None and now_s - stopped_s >= APART_S:
                return look.box
            stopped_s = now_s if stopped_s is None else stopped_s
        else:
            stopped_s = None
            if look.box is not None and now_s - asked_s >= AGAIN_S:
                asked_s, refusal = now_s, _ask(lambda: provider.stop_box(id))
        if look.is_gone or now_s >= until_s:
            raise still_bills(provider, id, look.box, look.doubt or refusal)
        calls.CLOCK.sleep(POLL_S if stopped_s is None else APART_S)


def _ask(question: Callable[[], None]) -> str:
    """Why it was not taken, for the last word; what came of it is seen by looking."""
    try:
        question()
    except BoxcarError as error:
        return words_of(error)
    return ""


def _looks_again(provider: Provider, id: str) -> str:
    return _(
        "{title}: {id} is gone, looking once more in {n} s",
        title=provider.title,
        id=id,
        n=int(APART_S),
    )


def _never_seen(provider: Provider) -> str:
    return _(
        "{title} knows nothing of it by this key, which has never seen it: another account's key "
        "would hear the same of a box that bills",
        title=provider.title,
    )


def still_bills(provider: Provider, id: str, box: Listed | None, why: str) -> MayStillBillError:
    """The sentence: what may bill, its rate, and where a person ends it."""
    rate = ""
    if box is not None and box.rate is not None:
        rate = _(", {rate:g} {currency} an hour", rate=box.rate, currency=box.currency)
    return MayStillBillError(
        _(
            "MAY STILL BILL: {title} {id}{rate}. {why}. Look at {console} ({click}), and repeat "
            "this command",
            title=provider.title,
            id=id,
            rate=rate,
            why=why or _(_NOTHING),
            console=provider.console,
            click=_(provider.by_hand),
        )
    )
