"""The events of a journal of which all that they come to is known: read when somebody asks for one.

Who looks at the newest of them reads no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from boxcar.shared.files import journal_chain
from boxcar.shared.files.journal_chain import LINE_FEED, Event


class LateEvents(Sequence[Event]):
    """`data` are `count` whole lines whose checks are right; `read` gives the events of all."""

    def __init__(self, data: bytes, count: int, read: Callable[[], Sequence[Event]]) -> None:
        self._data, self._count, self._read = data, count, read

    @cached_property
    def _all(self) -> Sequence[Event]:
        return self._read()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Event: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...

    def __getitem__(self, at: Any) -> Any:
        return next(reversed(self)) if at == -1 and self._count else self._all[at]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._all)

    def __reversed__(self) -> Iterator[Event]:
        end = len(self._data)
        while end > 0:
            begin = self._data.rfind(LINE_FEED, 0, end - 1) + 1
            yield journal_chain.event_of(self._data[begin:end].removesuffix(LINE_FEED))
            end = begin


class LateChecks(Sequence[str]):
    """The checks of those events: `newest` are known, `read` gives all `count`."""

    def __init__(
        self, newest: tuple[str, ...], count: int, read: Callable[[], Sequence[str]]
    ) -> None:
        self._newest, self._count, self._read = newest, count, read

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...

    def __getitem__(self, at: Any) -> Any:
        before = self._count - len(self._newest)
        places = range(self._count)[at]
        if isinstance(places, int):
            return self._newest[places - before] if places >= before else self._read()[at]
        is_known = min(places, default=before) >= before
        return [self._newest[place - before] for place in places] if is_known else self._read()[at]
