"""What is made when somebody asks for one of it: of a large run that is only shown, nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

S = TypeVar("S")
T = TypeVar("T")


class Late(Sequence[T]):
    """As the tuple that `make` gives."""

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self._make = make

    @cached_property
    def _all(self) -> tuple[T, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: Any) -> Any:
        return self._all[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all)


class LateEach(Late[T]):
    """Of which each is made of one of `these` when it is asked for, and of all where all are."""

    def __init__(self, these: Sequence[S], make: Callable[[S], T]) -> None:
        super().__init__(lambda: [make(one) for one in these])
        self._these, self._make_one = these, make

    def __len__(self) -> int:
        return len(self._these)

    def __getitem__(self, at: Any) -> Any:
        some = self._these[at]
        return [*map(self._make_one, some)] if isinstance(at, slice) else self._make_one(some)
