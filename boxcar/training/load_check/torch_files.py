"""A file of torch.save, opened: what it names, and what it holds. torch is imported where needed.

`source` is a path, or the bytes of one piece of a sharded checkpoint.
"""

from __future__ import annotations

import contextlib
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from boxcar.shared.artifacts.file_kinds import ZIP, has_zip_end
from boxcar.training import torch_private
from boxcar.training.load_check import pickles, stand_ins
from boxcar.training.load_check.pickles import Named
from boxcar.training.load_check.refusals import How

PICKLE = b"\x80"
Source = Path | io.BytesIO
_BLOCK_BYTES = 1 << 20
# What torch says where the system gives it no more memory.
_NO_MEMORY = re.compile(r"(?:tried to allocate|unable to mmap) (\d+) bytes")


def load_torch(source: Source, how: How) -> Any:
    """The value. Without its code, what it names must be harmless; torch decides, and stands in.

    Raises MemoryError where there was too little, else whatever torch raises: a damaged file fails
    inside zip, pickle or torch, with a different exception each time.
    """
    import torch

    options: dict[str, Any] = {"map_location": "cpu", "weights_only": not how.may_run_code}
    if isinstance(source, Path):
        options["mmap"] = begins_with(source, ZIP)
    try:
        with _taking(() if how.may_run_code else torch_names_in(source)):
            return torch.load(source, **options)
    except Exception as error:
        if _is_for_memory(source, error):
            raise MemoryError(str(error)) from error
        raise


def _is_for_memory(source: Source, error: Exception) -> bool:
    """Not where a damaged file claims to hold more than it is large."""
    found = _NO_MEMORY.search(str(error))
    size_bytes = source.stat().st_size if isinstance(source, Path) else len(source.getbuffer())
    return found is not None and int(found[1]) <= size_bytes


def torch_named_in(source: Source) -> Named:
    """What it names, and what is refused of that, as far as it can be read."""
    return _named_in(source, torch_private.harmless_globals())


def torch_names_in(source: Source) -> tuple[str, ...]:
    """All that it names; nothing where it is so damaged that torch has to say how."""
    try:
        return _named_in(source, ()).names
    except Exception:
        return ()


def begins_with(source: Source, magic: bytes) -> bool:
    with _opened(source) as file:
        return file.read(len(magic)) == magic


def archive_entries(source: Source) -> list[zipfile.ZipInfo]:
    """Nothing for a legacy file, and for an archive whose end is missing."""
    try:
        with _opened(source) as file, zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except zipfile.BadZipFile:
        return []


def has_end(path: Path) -> bool:
    with path.open("rb") as file:
        return has_zip_end(file)


def damages(source: Source) -> Iterator[str]:
    """Sentences: the parts of an archive whose bytes are not those of its checksums, which torch
    does not compare. A part without one (set_crc32_options, skip_data) is not judged.
    """
    if not begins_with(source, ZIP):
        return
    with _opened(source) as file, zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.CRC and _has_wrong_sum(archive, entry):
                yield f"is damaged: {entry.filename} is not what its checksum says"


def _has_wrong_sum(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    try:
        with archive.open(entry) as part:
            while part.read(_BLOCK_BYTES):
                pass
    except zipfile.BadZipFile as error:
        return "CRC" in str(error)  # what else zipfile minds, torch has read
    return False


def _named_in(source: Source, allowed: Iterable[str]) -> Named:
    with _opened(source) as file:
        if not begins_with(source, ZIP):
            return pickles.named_in(file, frozenset(allowed))
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if name.endswith("/data.pkl"):
                    with archive.open(name) as pickled:
                        return pickles.named_in(pickled, frozenset(allowed))
    return Named()


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    """From its beginning; a piece stays where it was for whoever reads on."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file
    else:
        yield io.BytesIO(source.getbuffer())


@contextlib.contextmanager
def _taking(names: Iterable[str]) -> Iterator[None]:
    """Inside, torch takes stand-ins for those of these names that are harmless."""
    from torch import serialization

    before = list(serialization.get_safe_globals())
    serialization.add_safe_globals([*stand_ins.of_names(names)])
    try:
        yield
    finally:
        # A context manager of torch's own is there only since 2.5.
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)
