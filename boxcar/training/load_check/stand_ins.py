"""Names in a pickle that are taken without asking, each with a stand-in of ours.

A pickle is a program that calls what it names. What is named here is never imported, made or
called: the stand-in takes the arguments, keeps what a look needs (containers, arrays, numbers) and
is nothing else. So it does not matter what the real one would do with arguments that were made to
harm, and no chain of them (a partial of a partial) leads anywhere. Why each may be taken:

    argparse.Namespace, SimpleNamespace,     containers: what is in them is looked at, and a
    Counter, OrderedDict, defaultdict,       factory is a name that nobody calls
    deque, set, frozenset, tuple
    functools.partial                        its arguments are looked at. It is not called, and its
                                             function must be one of these names
    pathlib, datetime, decimal, uuid,        one value each, of numbers and text
    fractions, range, slice, complex,
    bytearray
    numpy's scalars, dtypes and arrays       numbers are read here, by size and dtype; an array of
                                             Python objects is not opened
    torch's dtypes, device, Size, layouts    words, or a tuple of numbers
    types of Python, NumPy, torch.optim,     names of classes, as hyper-parameters have them: an
    torch.nn                                 object of one is refused (see `Word`)

Not in the list, because the real one runs what it is given: eval, getattr, operator, copyreg,
importlib, torch's reader of a storage's bytes, enums and all other classes.
"""

from __future__ import annotations

import math
import pickle
import re
import struct
from collections.abc import Iterable
from typing import Any

from boxcar.shared.sentence import _
from boxcar.training import torch_private


class Fixed(type):
    """A class whose attributes no pickle sets: it would change how other files are read."""

    def __setattr__(cls, name: str, value: object) -> None:
        raise pickle.UnpicklingError(_("sets {name} of {kind}", name=name, kind=cls.__name__))


class _Leaf(metaclass=Fixed):
    """One value, of which only its being there counts."""

    __slots__ = ()

    def __new__(cls, *ignored: object, **__: object) -> Any:
        return super().__new__(cls)

    def __setstate__(self, state: object) -> None:
        pass


class Word(metaclass=Fixed):
    """The name of a class or function. What makes or calls one is refused."""

    __slots__ = ()

    def __new__(cls, *ignored: object, **__: object) -> Any:
        raise MadeError(f"{cls.__module__}.{cls.__name__}")


class MadeError(pickle.UnpicklingError):
    """The pickle makes an object of a class that may only be named. Its text is the name."""


class _Fields(dict[Any, Any], metaclass=Fixed):
    """A container by name. Attributes of its own become entries."""

    def __new__(cls, *ignored: object, **__: object) -> Any:
        return super().__new__(cls)

    def __init__(self, *values: object) -> None:
        super().__init__()
        for value in values:
            self._take(value)

    def __setstate__(self, state: object) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            self._take(part)

    def _take(self, value: object) -> None:
        if isinstance(value, dict):
            self.update(value)
        elif isinstance(value, (list, tuple)):
            self.update(enumerate(value))


class _Dict(metaclass=Fixed):
    """A defaultdict, whose first argument is its factory."""

    def __new__(cls, *ignored: object) -> Any:
        return {}


class _List(metaclass=Fixed):
    def __new__(cls, values: Any = (), *ignored: object) -> Any:
        return list(values) if isinstance(values, (list, tuple, set)) else []


class _Tuple(metaclass=Fixed):
    """What may be a key stays one."""

    def __new__(cls, values: Any = (), *ignored: object) -> Any:
        return tuple(values) if isinstance(values, (list, tuple, set)) else ()


class _Path(metaclass=Fixed):
    def __new__(cls, *parts: object) -> Any:
        return "/".join(part for part in parts if isinstance(part, str))


class _Bytes(metaclass=Fixed):
    """A bytearray, and what protocol 2 writes in place of bytes."""

    def __new__(cls, data: object = b"", encoding: object = "latin1") -> Any:
        if isinstance(data, str) and encoding in ("latin1", "latin-1"):
            return data.encode("latin1")
        if isinstance(data, (bytes, bytearray)):
            return bytes(data)
        raise pickle.UnpicklingError(_("makes bytes of a {name}", name=type(data).__name__))


class DType(metaclass=Fixed):
    """A NumPy type as its pickle spells it: `f8`, and `<`, `>`, `=` or `|`.

    `claimed_bytes`: what a record or a text says that it takes. `has_objects`: not only numbers.
    """

    __slots__ = ("claimed_bytes", "has_objects", "order", "spelled")
    claimed_bytes: int | None
    has_objects: bool
    order: str
    spelled: str

    def __new__(cls, spelled: object = "", *ignored: object) -> Any:
        made = super().__new__(cls)
        made.spelled = spelled if isinstance(spelled, str) else ""
        made.order = "="
        made.claimed_bytes, made.has_objects = None, made.spelled.startswith("O")
        return made

    def __setstate__(self, state: Any) -> None:
        """Of NumPy: version, order, of a subarray, names, fields, bytes or -1, alignment, flags."""
        self.order = str(state[1]) if isinstance(state, tuple) and len(state) > 1 else "?"
        if isinstance(state, tuple) and len(state) > 7:
            is_claimed = type(state[5]) is int and state[5] >= 0
            self.claimed_bytes = state[5] if is_claimed else None
            self.has_objects |= type(state[7]) is int and bool(state[7] & 1)

    @property
    def number(self) -> str | None:
        """`f8` where this machine could read it as it lies there."""
        is_number = re.fullmatch(r"(b1|[iu][1248]|f[248]|c(8|16))", self.spelled)
        return self.spelled if is_number and self.order in "<=|" else None

    @property
    def item_bytes(self) -> int | None:
        found = re.fullmatch(r"[a-zA-Z](\d{1,2})", self.spelled)
        return int(found[1]) if found and self.spelled[0] in "biufc" else None

    @property
    def stored_bytes(self) -> int | None:
        """What one of them takes where they lie raw: also a date, a text, a record."""
        found = re.fullmatch(r"[SUVMm](\d{1,9})", self.spelled)
        of_text = int(found[1]) * (4 if self.spelled[0] == "U" else 1) if found else None
        return next(
            (size for size in (self.item_bytes, self.claimed_bytes, of_text) if size is not None),
            None,
        )


class Array(metaclass=Fixed):
    """A NumPy array: `number` is its type such as `f8`, None where its bytes are not numbers."""

    __slots__ = ("data", "number", "shape")
    data: bytes
    number: str | None
    shape: tuple[int, ...]

    def __new__(cls, *ignored: object) -> Any:
        made = super().__new__(cls)
        made.data, made.number, made.shape = b"", None, ()
        return made

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5:
            raise pickle.UnpicklingError(_("holds an array without a state"))
        self.fill(state[1], state[2], state[4])

    def fill(self, shape: object, dtype: object, data: object) -> None:
        if not isinstance(dtype, DType) or not isinstance(data, (bytes, bytearray)):
            return
        if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape):
            raise pickle.UnpicklingError(_("holds an array of no shape"))
        if dtype.item_bytes and len(data) != (wanted := math.prod(shape) * dtype.item_bytes):
            raise pickle.UnpicklingError(
                _("holds an array of {n} bytes, expected {wanted}", n=len(data), wanted=wanted)
            )
        self.data, self.number, self.shape = bytes(data), dtype.number, shape


class _Buffer(metaclass=Fixed):
    """An array as protocol 5 writes it: bytes, type, shape."""

    def __new__(
        cls, data: object = b"", dtype: object = None, shape: object = (), *ignored: object
    ) -> Any:
        made = Array()
        made.fill(shape, dtype, data)
        return made


class _Number(metaclass=Fixed):
    """A NumPy scalar, as the number that it is."""

    def __new__(cls, dtype: object = None, data: object = b"", *ignored: object) -> Any:
        kind = dtype.number if isinstance(dtype, DType) else None
        if kind is None or not isinstance(data, bytes) or len(data) != int(kind[1:]):
            return _Leaf()
        if kind[0] in "biu":
            return int.from_bytes(data, "little", signed=kind[0] == "i")
        formats = {"f2": "<e", "f4": "<f", "f8": "<d"}
        return struct.unpack(formats[kind], data)[0] if kind in formats else _Leaf()


_PATHS = ("Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath", "WindowsPath")
_NUMPY = ("numpy.core", "numpy._core")  # before 2.0, and since
_BASES: dict[str, type] = {
    "argparse.Namespace": _Fields,
    "types.SimpleNamespace": _Fields,
    "functools.partial": _Fields,
    "collections.OrderedDict": _Fields,
    "collections.Counter": _Fields,
    "collections.defaultdict": _Dict,
    "collections.deque": _List,
    "builtins.set": _List,
    "builtins.frozenset": _Tuple,
    "builtins.tuple": _Tuple,
    "builtins.bytes": _Bytes,
    "builtins.bytearray": _Bytes,
    "_codecs.encode": _Bytes,
    **{f"builtins.{name}": _Leaf for name in ("complex", "range", "slice")},
    **{f"{home}.{name}": _Path for home in ("pathlib", "pathlib._local") for name in _PATHS},
    **{f"datetime.{name}": _Leaf for name in ("date", "datetime", "time", "timedelta", "timezone")},
    "decimal.Decimal": _Leaf,
    "fractions.Fraction": _Leaf,
    "uuid.UUID": _Leaf,
    "numpy.dtype": DType,
    **{f"{home}.multiarray._reconstruct": Array for home in _NUMPY},
    **{f"{home}.multiarray.scalar": _Number for home in _NUMPY},
    **{f"{home}.numeric._frombuffer": _Buffer for home in _NUMPY},
    "torch.Size": _Tuple,
    "torch.device": _Leaf,
    ".".join(torch_private.LAYOUT): _Leaf,
}
_TYPES = (
    "bool bytearray bytes complex dict float frozenset int list object range set slice str "
    "tuple type"
)
_WORDS = re.compile(
    rf"builtins\.({_TYPES.replace(' ', '|')})"
    r"|numpy\.(ndarray|generic|number|bool_?|(u?int|float|complex)(8|16|32|64|128)|str_|bytes_)"
    r"|numpy\.dtypes\.[A-Z]\w*DType"
    r"|torch\.(float|bfloat|complex|u?int|q?u?int)\d+(_\w+)?|torch\.bool"
    r"|torch\.(contiguous_format|preserve_format|channels_last(_3d)?|strided|sparse_\w+)"
    r"|torch\.optim\.\w+\.[A-Z]\w*|torch\.nn\.modules\.\w+\.[A-Z]\w*"
    r"|torch\.nn\.functional\.[a-z]\w*|torch\.nn\.init\.[a-z]\w*_"
)
_MADE: dict[str, type] = {}


def of(name: str) -> type | None:
    """The stand-in of `module.name`, always the same one; None for what is not in the list."""
    base = _BASES.get(name) or (Word if _WORDS.fullmatch(name) else None)
    if base is None:
        return None
    if name not in _MADE:
        module, _, own = name.rpartition(".")
        # torch finds what it may take by these two.
        about = {"__module__": module, "__qualname__": own, "__slots__": ()}
        _MADE[name] = type(base)(own, (base,), about)
    return _MADE[name]


def of_names(names: Iterable[str]) -> list[type]:
    return [found for found in map(of, names) if found is not None]
