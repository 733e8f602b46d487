"""What a pickle would call, found out without calling it.

A pickle is a program, and can do what its globals can: the functions and classes that it names. It
is run here with something inert in the place of each, so nothing of it happens but numbers, text
and containers.
"""

from __future__ import annotations

import pickle
from typing import IO, Any

# A checkpoint of torch before 1.6: magic number, protocol, system, the object, its storages' keys.
_LEGACY_PICKLES = 5


def load_inert(file: IO[bytes]) -> tuple[Any, list[str]]:
    """The value, and the globals that it names, such as `posix.system`.

    Without any the value is the real one. Raises what unpickling damaged bytes raises.
    """
    unpickler = _InertUnpickler(file)
    value = unpickler.load()
    return value, list(unpickler.names)


def globals_of(file: IO[bytes]) -> list[str]:
    """The globals of the pickles at the beginning of `file`, as far as they can be read."""
    names: dict[str, None] = {}
    for _ in range(_LEGACY_PICKLES):
        unpickler = _CheckpointUnpickler(file)
        try:
            unpickler.load()
        # Damaged bytes raise nearly anything, and what follows the last pickle is none.
        except Exception:
            return list(names | unpickler.names)
        names |= unpickler.names
    return list(names)


class _Inert:
    """Takes the place of every function, class and object: accepts all and does nothing."""

    def __new__(cls, *_: Any, **__: Any) -> _Inert:
        return super().__new__(cls)

    def __call__(self, *_: Any, **__: Any) -> _Inert:
        return self

    __setstate__ = __setitem__ = append = extend = add = __call__


class _InertUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.names: dict[str, None] = {}

    def find_class(self, module: str, name: str) -> Any:
        self.names[f"{module}.{name}"] = None
        return _Inert


class _CheckpointUnpickler(_InertUnpickler):
    """Tensors lie beside a checkpoint's pickle, which speaks of them by id."""

    def persistent_load(self, pid: Any) -> Any:
        return _Inert()
