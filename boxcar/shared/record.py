"""`@dataclass(frozen=True)`, made in a fraction of the time. All else comes from `dataclasses`.

Python's own writes the source of six methods for each class, and compiles it. Every answer of a
box, every attempt and every verb is a new process that makes a hundred such classes and uses a few.
Here the six are the same functions for all, and look at each call what the class consists of. Of a
class that many are made of, which a large run has a hundred thousand of, its own `__init__` is
written after all: it takes a third of the time.
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


# From as many of one class on, what it takes to write its `__init__` is less than what that saves.
_MANY = 500


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
        self.post_init: Callable[[Any], None] | None = getattr(cls, "__post_init__", None)
        self.cls, self.made = cls, 0


def _getter(names: list[str]) -> Callable[[object], Any]:
    """Gives a tuple of these fields' values."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _init(self: Any, /, *values: Any, **named: Any) -> None:
    shape: _Shape = self.__shape__
    shape.made += 1
    if shape.made == _MANY:
        shape.cls.__init__ = _written(shape)
    state: dict[str, Any] = self.__dict__
    if values:
        state.update(zip(shape.names, values, strict=False))
    # Nearly all are given all of their fields, by place or, read from a file, by name.
    if named or len(values) != len(shape.names):
        state.update(named)
        if len(state) < len(shape.names):
            _fill_in(state, shape)
        if state.keys() != shape.known or (
            values and not _is_each_given_once(shape, values, named)
        ):
            raise TypeError(_misfit(self, shape, values, named))
    if shape.post_init:
        shape.post_init(self)


def _written(shape: _Shape) -> Callable[..., None]:
    """The `__init__` of this one class, as source that was compiled."""
    # No field's name ends with an underscore: none of them hides one of these.
    given = {f"default_{name}_": value for name, value in shape.defaults.items()}
    given |= {f"make_{name}_": factory for name, factory in shape.factories.items()}
    given |= {"missing_": dataclasses.MISSING, "post_init_": shape.post_init}
    taken, kept = [], []
    for name in shape.names:
        default = f"=default_{name}_" if name in shape.defaults else ""
        is_made = name in shape.factories
        taken.append(f"{name}=missing_" if is_made else f"{name}{default}")
        value = f"make_{name}_() if {name} is missing_ else {name}" if is_made else name
        kept.append(f"    state_['{name}'] = {value}")
    if shape.post_init:
        kept.append("    post_init_(self_)")
    head = f"def __init__(self_, {', '.join(taken)}):"
    source = "\n".join([head, "    state_ = self_.__dict__", *kept])
    exec(source, given)
    written: Callable[..., None] = given["__init__"]
    return written


def _is_each_given_once(shape: _Shape, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
    by_place = shape.names[: len(values)]
    return len(values) == len(by_place) and named.keys().isdisjoint(by_place)


def _fill_in(state: dict[str, Any], shape: _Shape) -> None:
    state.update({**shape.defaults, **state})
    for name, factory in shape.factories.items():
        if name not in state:
            state[name] = factory()


def replace(record: R, /, **changes: Any) -> R:
    """As `dataclasses.replace` does, of a record that was made here."""
    shape: _Shape = record.__shape__  # type: ignore[attr-defined]
    known = record.__dict__
    made = object.__new__(type(record))
    state = made.__dict__
    # More is what cached properties keep, which may not hold of the new one.
    state.update(known if len(known) == len(shape.names) else _fields_of(known, shape))
    state.update(changes)
    if len(state) > len(shape.names):
        raise TypeError(_misfit(record, shape, (), changes))
    if shape.post_init:
        shape.post_init(made)
    return made


def _fields_of(known: dict[str, Any], shape: _Shape) -> dict[str, Any]:
    return {name: known[name] for name in shape.names}


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
