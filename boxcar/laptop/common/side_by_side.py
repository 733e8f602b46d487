"""The same thing done for several boxes at once, where one that fails holds up no other."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from boxcar.shared.errors import BoxcarError, InputError, TemporaryError, message_of
from boxcar.shared.sentence import _

T = TypeVar("T")
R = TypeVar("R")

MOST_AT_ONCE = 20
# Of the thread that does one of several things: set where the person gave all of them up.
_given_up: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "given_up", default=None
)


def each(
    things: Iterable[T],
    act: Callable[[T], R],
    *,
    most: int = MOST_AT_ONCE,
    on_interrupt: Callable[[], None] = lambda: None,
) -> list[R]:
    """What `act` makes of each, in their order, `most` at once. Raises the first error, once all
    have ended. Ctrl-C is heard by the main thread alone: `on_interrupt` makes them end sooner, and
    so does `end_if_given_up` where they ask it.
    """
    wanted = list(things)
    if not wanted:
        return []
    given_up = _given_up.get() or threading.Event()

    def act_for_all(thing: T) -> R:
        _given_up.set(given_up)
        return act(thing)

    with ThreadPoolExecutor(min(len(wanted), most)) as pool:
        try:
            return list(pool.map(act_for_all, wanted))
        except (KeyboardInterrupt, SystemExit):
            given_up.set()
            on_interrupt()
            raise


def end_if_given_up() -> None:
    """Before what takes long, or what cannot be taken back. Raises TemporaryError."""
    given_up = _given_up.get()
    if given_up and given_up.is_set():
        raise TemporaryError(_("interrupted"))


def each_or_why(
    names: Iterable[str],
    act: Callable[[str], R],
    *,
    on_interrupt: Callable[[], None] = lambda: None,
) -> tuple[dict[str, R], dict[str, Exception]]:
    """What came of each that succeeded, and the error of each other one, both by name.
    `on_interrupt` is as in `each`.
    """
    wanted = list(names)
    done: dict[str, R] = {}
    errors: dict[str, Exception] = {}

    def attempt(name: str) -> None:
        try:
            done[name] = act(name)
        except (BoxcarError, OSError) as error:
            errors[name] = error

    each(wanted, attempt, on_interrupt=on_interrupt)
    return (
        {name: done[name] for name in wanted if name in done},
        {name: errors[name] for name in wanted if name in errors},
    )


def raise_all(errors: Mapping[str, Exception]) -> None:
    """Raise one error as it is, several as one that says whose each is; nothing for none."""
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        messages = [message_of(error).under(name) for name, error in errors.items()]
        is_the_persons = all(isinstance(error, InputError) for error in errors.values())
        raise (InputError if is_the_persons else BoxcarError)(messages)
