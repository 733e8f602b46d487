"""What a pickle names and would call, found out without calling it.

A pickle is a program, and can do what its globals can: the functions and classes that it names. It
is run here with something inert in the place of each, so nothing of it happens but numbers, text
and containers. What stands in for a name that is harmless (stand_ins.py) keeps its value.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Collection
from typing import IO, Any

from boxcar.shared.record import dataclass
from boxcar.training.load_check import raw_arrays, stand_ins

# A checkpoint of torch before 1.6: magic number, protocol, system, the object, its storages' keys.
_LEGACY_PICKLES = 5
_PYTHON_2 = {"long": "int", "unicode": "str", "xrange": "range"}


@dataclass(frozen=True)
class Named:
    """The globals that pickles name, such as `posix.system`, and those of them that are refused."""

    names: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def load_inert(file: IO[bytes]) -> tuple[Any, Named]:
    """The value, and what it names; also of a pickle with raw arrays, as joblib writes it.

    Where nothing of it is refused the value is as the real one for a look. Raises what unpickling
    damaged bytes raises.
    """
    unpickler = _RawArraysUnpickler(file)
    value = unpickler.load_or_refuse()
    return value, unpickler.named


def names_in(file: IO[bytes]) -> tuple[str, ...]:
    """All that the pickle at the beginning of `file` names, as far as it can be read."""
    unpickler = _RawArraysUnpickler(file)
    # Damaged bytes raise nearly anything; who loads them says how.
    with contextlib.suppress(Exception):
        unpickler.load_or_refuse()
    return unpickler.named.names


def named_in(file: IO[bytes], allowed: Collection[str] = ()) -> Named:
    """What the pickles at the beginning of `file` name, as far as they can be read.

    `allowed` are names that somebody else takes as harmless.
    """
    names: dict[str, None] = {}
    refused: dict[str, None] = {}
    for _ in range(_LEGACY_PICKLES):
        unpickler = _CheckpointUnpickler(file)
        unpickler.allowed = allowed
        try:
            unpickler.load_or_refuse()
            is_read = True
        # Damaged bytes raise nearly anything, and what follows the last pickle is none.
        except Exception:
            is_read = False
        names |= dict.fromkeys(unpickler.named.names)
        refused |= dict.fromkeys(unpickler.named.refused)
        if not is_read:
            break
    return Named(tuple(names), tuple(refused))


class _Inert:
    """Takes the place of every function, class and object: accepts all and does nothing."""

    def __new__(cls, *_: Any, **__: Any) -> _Inert:
        return super().__new__(cls)

    def __call__(self, *_: Any, **__: Any) -> _Inert:
        return self

    __setstate__ = __setitem__ = append = extend = add = __call__


class _InertUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes] | _Exact) -> None:
        super().__init__(file)
        self.allowed: Collection[str] = ()
        self._names: dict[str, None] = {}
        self._refused: dict[str, None] = {}

    @property
    def named(self) -> Named:
        return Named(tuple(self._names), tuple(self._refused))

    def load_or_refuse(self) -> Any:
        """None for a pickle that makes an object of what may only be named."""
        try:
            return self.load()
        except stand_ins.MadeError as error:
            self._refused[str(error)] = None
            return None

    def find_class(self, module: str, name: str) -> Any:
        whole = _spelled(module, name)
        self._names[whole] = None
        stand_in = stand_ins.of(whole)
        if stand_in is not None:
            return stand_in
        if whole not in self.allowed:
            self._refused[whole] = None
        return _Inert


def _spelled(module: str, name: str) -> str:
    """As Python 3 calls it: protocols up to 2 are written with the names of Python 2."""
    if module == "__builtin__":
        return f"builtins.{_PYTHON_2.get(name, name)}"
    return f"{module}.{name}"


class _CheckpointUnpickler(_InertUnpickler):
    """Tensors lie beside a checkpoint's pickle, which speaks of them by id."""

    def persistent_load(self, pid: Any) -> Any:
        return _Inert()


class _Exact:
    """Without `peek`, so that no byte is read ahead of the opcode that asks for it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read, self.readline = file.read, file.readline


class _RawArraysUnpickler(_InertUnpickler):
    def __init__(self, file: IO[bytes]) -> None:
        self._exact = _Exact(file)
        super().__init__(self._exact)
        self._raw_array = raw_arrays.raw_array_stand_in(self._exact.read, self._load_nested)

    def find_class(self, module: str, name: str) -> Any:
        if _spelled(module, name) != raw_arrays.JOBLIB_WORD:
            return super().find_class(module, name)
        self._names[raw_arrays.JOBLIB_WORD] = None
        return self._raw_array

    def _load_nested(self) -> None:
        """An array of Python objects, which is a pickle of its own."""
        nested = _InertUnpickler(self._exact)
        nested._names, nested._refused = self._names, self._refused
        nested.load()
