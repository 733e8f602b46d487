"""The same thing done for several boxes at once, where one that fails holds up no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from boxcar.shared.errors import BoxcarError, InputError, message_of

T = TypeVar("T")
R = TypeVar("R")

MOST_AT_ONCE = 20


def each(
    things: Iterable[T],
    act: Callable[[T], R],
    *,
    most: int = MOST_AT_ONCE,
    on_interrupt: Callable[[], None] = lambda: None,
) -> list[R]:
    """What `act` makes of each, in their order, `most` at once. Raises the first error, once all
    have ended; `on_interrupt` makes them end sooner.
    """
    wanted = list(things)
    if not wanted:
        return []
    with ThreadPoolExecutor(min(len(wanted), most)) as pool:
        try:
            return list(pool.map(act, wanted))
        except (KeyboardInterrupt, SystemExit):
            on_interrupt()
            raise


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
