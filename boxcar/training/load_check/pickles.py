"""What a pickle names and would call, found out without calling it.

A pickle is a program, and can do what its globals can: the functions and classes that it names. It
is run here with something inert in the place of each, so nothing of it happens but numbers, text
and containers. What stands in for a name that is harmless (stand_ins.py) keeps its value.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import math
import pickle
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Any

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.training.load_check import stand_ins
from boxcar.training.load_check.stand_ins import Array, DType, Fixed

# --- joblib's own format: a pickle in which arrays lie raw, behind a word of joblib's that says so.
# Read without joblib and without NumPy: what stands in for that word takes the bytes that follow
# it.


JOBLIB_HOME = "joblib.numpy_pickle"
JOBLIB_WORD = f"{JOBLIB_HOME}.NumpyArrayWrapper"
# A damaged file that claims to hold more than it is large ends at its end, and takes no memory.
_ARRAY_CHUNK_BYTES = 1 << 20


def raw_array_stand_in(read: Callable[[int], bytes], load_pickle: Callable[[], object]) -> type:
    """For one file. `read` goes on where the pickle stands, `load_pickle` reads another there."""

    def set_state(self: Array, state: Any) -> None:
        shape, dtype = state["shape"], state["dtype"]
        if not isinstance(dtype, DType):
            raise pickle.UnpicklingError(_("holds an array of no type"))
        if dtype.has_objects:
            load_pickle()
            return
        if state.get("numpy_array_alignment_bytes") is not None:
            _exactly(read, _exactly(read, 1)[0])
        self.fill(shape, dtype, _exactly(read, _size_bytes(shape, dtype)))

    body = {"__slots__": (), "__setstate__": set_state}
    return Fixed("NumpyArrayWrapper", (Array,), body)


def _size_bytes(shape: Any, dtype: DType) -> int:
    if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape):
        raise pickle.UnpicklingError(_("holds an array of no shape"))
    if dtype.stored_bytes is None:
        raise pickle.UnpicklingError(
            _("holds an array of {spelled!r}, which is of no size", spelled=dtype.spelled)
        )
    return math.prod(shape) * dtype.stored_bytes


def _exactly(read: Callable[[int], bytes], size_bytes: int) -> bytes:
    data = bytearray()
    while len(data) < size_bytes:
        more = read(min(_ARRAY_CHUNK_BYTES, size_bytes - len(data)))
        if not more:
            raise EOFError(
                _(
                    "an array of {size_bytes} bytes ends after {n}",
                    size_bytes=size_bytes,
                    n=len(data),
                )
            )
        data += more
    return bytes(data)


# --- A pickle that was compressed as a whole, as `joblib.dump(compress=3)` does.
# By its first bytes, as joblib does; none of them begins a pickle.


_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def opened_pickle(path: Path) -> Iterator[IO[bytes]]:
    """The file, or what it holds compressed.

    Raises what its library raises of damaged bytes, ImportError where that library is missing.
    """
    opener = _opener(path)
    with path.open("rb") as raw:
        if opener is None:
            yield raw
        else:
            with opener(raw) as file:
                yield file


def check_to_the_end(path: Path, file: IO[bytes]) -> None:
    """Only at its end does a compressor say whether each bit is as it was written."""
    if _opener(path):
        while file.read(_CHUNK_BYTES):
            pass


def _opener(path: Path) -> Callable[[IO[bytes]], Any] | None:
    with path.open("rb") as file:
        head = file.read(8)
    return next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)


class _Zlib(io.RawIOBase):
    """Python has a file of this kind for each compressor but zlib."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._inflater = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._inflater.eof:
            data = self._inflater.unconsumed_tail or self._file.read(_CHUNK_BYTES)
            found = self._inflater.decompress(data, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
            if not data:
                raise EOFError(_("the end of its compressed data is missing"))
        return 0


def _of_zlib(file: IO[bytes]) -> Any:
    return io.BufferedReader(_Zlib(file), _CHUNK_BYTES)


def _of_lz4(file: IO[bytes]) -> Any:
    from lz4 import frame

    return frame.open(file)


_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x5d\x00": lzma.open,
    b"\x78": _of_zlib,
    b"\x04\x22\x4d\x18": _of_lz4,
}


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
    for _pickle in range(_LEGACY_PICKLES):
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

    def __new__(cls, *ignored: Any, **__: Any) -> _Inert:
        return super().__new__(cls)

    def __call__(self, *ignored: Any, **__: Any) -> _Inert:
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
        self._raw_array = raw_array_stand_in(self._exact.read, self._load_nested)

    def find_class(self, module: str, name: str) -> Any:
        if _spelled(module, name) != JOBLIB_WORD:
            return super().find_class(module, name)
        self._names[JOBLIB_WORD] = None
        return self._raw_array

    def _load_nested(self) -> None:
        """An array of Python objects, which is a pickle of its own."""
        nested = _InertUnpickler(self._exact)
        nested._names, nested._refused = self._names, self._refused
        nested.load()
