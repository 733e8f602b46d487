"""`@dataclass(frozen=True)`, made in a fraction of the time. All else comes from `dataclasses`.

Python's own writes the source of six methods for each class, and compiles it. Every answer of a
box, every attempt and every verb is a new process that makes a hundred such classes and uses a few.
Here the six are the same functions for all, and look at each call what the class consists of.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

C = TypeVar("C", bound=type)

R = TypeVar("R")

__all__ = ["dataclass", "replace"]


class _Shape:
    """What the fields of a class are."""

    def __init__(self, cls: type[Any]) -> None:
        fields, missing = dataclasses.fields(cls), dataclasses.MISSING
        self.names = tuple(field.name for field in fields)
        self.known = frozenset(self.names)
        self.defaults = {f.name: f.default for f in fields if f.default is not missing}
        self.factories = {
            f.name: f.default_factory for f in fields if f.default_factory is not missing
        }
        self.compared = _getter([field.name for field in fields if field.compare])
        self.shown = tuple(field.name for field in fields if field.repr)


def _getter(names: list[str]) -> Callable[[object], Any]:
    """Gives a tuple of these fields' values."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _init(self: Any, /, *values: Any, **named: Any) -> None:
    shape: _Shape = self.__shape__
    state: dict[str, Any] = self.__dict__
    if values:
        positional = dict(zip(shape.names, values, strict=False))
        if len(positional) < len(values) or not positional.keys().isdisjoint(named):
            raise TypeError(_misfit(self, shape, values, named))
        state |= positional
    state |= named
    if len(state) < len(shape.names):
        _fill_in(state, shape)
    if state.keys() != shape.known:
        raise TypeError(_misfit(self, shape, values, named))
    if post_init := getattr(self, "__post_init__", None):
        post_init()


def replace(record: R, /, **changes: Any) -> R:
    """As `dataclasses.replace` does, of a record that was made here."""
    known = record.__dict__
    fields = {name: known[name] for name in record.__shape__.names}  # type: ignore[attr-defined]
    return type(record)(**(fields | changes))


def _fill_in(state: dict[str, Any], shape: _Shape) -> None:
    for name, default in shape.defaults.items():
        if name not in state:
            state[name] = default
    for name, factory in shape.factories.items():
        if name not in state:
            state[name] = factory()


def _misfit(self: Any, shape: _Shape, values: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Without a value: it may be a secret."""
    given = " and ".join(filter(None, [f"{len(values)} by place", ", ".join(named)]))
    return f"{type(self).__qualname__}: expected {', '.join(shape.names)}; found {given}"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shape__.shown)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    compared = self.__shape__.compared
    return compared(self) == compared(other)


def _hash(self: Any) -> int:
    return hash(self.__shape__.compared(self))


def _setattr(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_METHODS = {
    "__init__": _init,
    "__repr__": reprlib.recursive_repr()(_repr),
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
}


def _make(cls: C) -> C:
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else the signature would be looked up, and stand there
    is_derived = any(hasattr(base, "__shape__") for base in cls.__bases__)
    dataclasses.dataclass(init=False, repr=False, eq=False, frozen=is_derived)(cls)
    # Else Python's own could not inherit from it.
    cls.__dataclass_params__.frozen = True  # type: ignore[attr-defined]
    cls.__shape__ = _Shape(cls)  # type: ignore[attr-defined]
    for name, method in _METHODS.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool) -> Callable[[C], C]:
        """`frozen` is said, so that a class reads as those of Python do."""
        if not frozen:
            raise TypeError("expected frozen=True: a class that may change is Python's own")
        return _make
