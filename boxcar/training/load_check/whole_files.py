"""Formats of which is only seen whether all of the file is there; no value in them is looked at.

Each says by itself how long it is, or ends in a way in which nothing else in it does. A zip has a
checksum for each of its entries as well.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.artifacts.file_kinds import HDF5, has_zip_end
from boxcar.shared.sentence import _, quotation
from boxcar.training.load_check import protobuf, survey
from boxcar.training.load_check.protobuf import WireError
from boxcar.training.load_check.refusals import How, NotItsKindError

Looked = tuple[list[str], dict[str, Any]]
_UNLOOKED = {"unlooked": [_("every value")]}
# HDF5's superblock may stand behind somebody else's bytes, at each power of two from here on.
_FIRST_BLOCK, _BLOCKS = 512, 32
_LONGEST_SUPERBLOCK = 96
# MindSpore's own sum, of everything before it: this word and ten bytes.
_CRC, _CRC_BYTES = b"crc_num", 17
# UBJSON: what each value takes behind its mark.
_UBJSON = dict(zip(b"ZNTFiUCIldLD", (0, 0, 0, 0, 1, 1, 1, 2, 4, 4, 8, 8), strict=True))
_PANDAS = b"pandas_categorical:"
_BLOCK_BYTES = 1 << 20


def look_at_zip(path: Path, keys: Sequence[str], ignored: How) -> Looked:
    """Of keras, torch.export, Stable-Baselines3, skops. Keys are names of its entries."""
    with path.open("rb") as file:
        is_whole = has_zip_end(file)
    if not is_whole:
        raise NotItsKindError(
            _("is truncated or not a zip file: the end of its archive is missing")
        )
    with zipfile.ZipFile(path) as archive:
        problems = [problem for entry in archive.infolist() if (problem := _torn(archive, entry))]
        problems += survey.missing_keys(dict.fromkeys(archive.namelist()), keys)
        return problems if archive.namelist() else [_("holds nothing: no entry")], _UNLOOKED


def _torn(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str | None:
    try:
        with archive.open(entry) as part:
            while part.read(_BLOCK_BYTES):
                pass
    except (NotImplementedError, RuntimeError):
        return None  # encrypted, or compressed as this Python cannot
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        return _(
            "is damaged: {filename} is not what its checksum says ({error})",
            filename=entry.filename,
            error=error,
        )
    return None


def look_at_hdf5(path: Path, keys: Sequence[str], ignored: How) -> Looked:
    """Of keras and h5py: where it ends stands in its superblock, which is written at the close."""
    with path.open("rb") as file:
        size_bytes = file.seek(0, 2)
        for at in (0, *(_FIRST_BLOCK << power for power in range(_BLOCKS))):
            file.seek(min(at, size_bytes))
            block = file.read(_LONGEST_SUPERBLOCK)
            if block.startswith(HDF5) and len(block) == _LONGEST_SUPERBLOCK:
                break
        else:
            raise NotItsKindError(_("is truncated or not an HDF5 file: it has no superblock"))
    width, at = (block[13], 24 + 4 * block[8]) if block[8] < 2 else (block[9], 12)
    end = block[at + 2 * width : at + 3 * width]
    if int.from_bytes(end, "little") > size_bytes:
        return [
            _(
                "is truncated: it has {size_bytes} bytes, and its superblock says more",
                size_bytes=size_bytes,
            )
        ], {}
    return _not_asked(keys), _UNLOOKED


def look_at_ubjson(path: Path, keys: Sequence[str], ignored: How) -> Looked:
    """Of XGBoost: its outermost bracket closes where the file ends."""
    view = protobuf.mapped(path)
    try:
        end = _end_of_value(view, 0)
    except (IndexError, KeyError) as error:
        raise NotItsKindError(
            _("is truncated or not UBJSON: {error}", error=quotation(repr(error)))
        ) from error
    if end != len(view):
        raise NotItsKindError(
            _(
                "is truncated or not UBJSON: its value ends at byte {end}, the file at {n}",
                end=end,
                n=len(view),
            )
        )
    return _not_asked(keys), _UNLOOKED


def _end_of_value(view: memoryview, at: int) -> int:
    """Raises IndexError where the bytes end before it does, KeyError for a mark that is none."""
    mark, at = view[at], at + 1
    if mark in b"SH":
        length, at = _length(view, at)
        return at + length
    if mark not in b"[{":
        return at + _UBJSON[mark]
    item = count = None
    if view[at] == ord("$"):
        item, at = view[at + 1], at + 2
    if view[at] == ord("#"):
        count, at = _length(view, at + 1)
    if item is not None and mark == ord("["):
        return at + (count or 0) * _UBJSON[item]
    while count is None or count > 0:
        if count is None and view[at] in b"]}":
            return at + 1
        if mark == ord("{"):
            length, at = _length(view, at)
            at += length
        at = _end_of_value(view, at)
        count = None if count is None else count - 1
    return at


def _length(view: memoryview, at: int) -> tuple[int, int]:
    end = at + 1 + _UBJSON[view[at]]
    return int.from_bytes(view[at + 1 : end], "big"), end


def look_at_lightgbm(path: Path, keys: Sequence[str], ignored: How) -> Looked:
    """Its text: trees, their parameters, and what pandas knew of the columns, if it was asked."""
    __, end, rest = path.read_bytes().partition(b"\nend of parameters\n")
    if not end:
        return [_("is truncated: `end of parameters` is missing")], {}
    section = rest.strip()
    is_whole = not section or not _PANDAS.startswith(section[: len(_PANDAS)])
    if section.startswith(_PANDAS):
        with contextlib.suppress(ValueError):
            json.loads(section.removeprefix(_PANDAS))
            is_whole = True
    if not is_whole:
        return [_("is truncated: it ends in {section!r}", section=section[:40])], {}
    return _not_asked(keys), _UNLOOKED


def look_at_mindspore(path: Path, keys: Sequence[str], ignored: How) -> Looked:
    """Of `save_checkpoint`: parameters one after the other. Keys are their names."""
    view, names = protobuf.mapped(path), []
    if bytes(view[-_CRC_BYTES:]).startswith(_CRC):
        wanted = int.from_bytes(view[len(_CRC) - _CRC_BYTES :], "big")
        view = view[:-_CRC_BYTES]
        if zlib.crc32(view) != wanted:
            return [_("is damaged: it is not what its checksum says")], {}
    try:
        for number, value in protobuf.fields(view):
            if number != 1:
                raise WireError(_("field {number} does not belong to a checkpoint", number=number))
            parameter = dict(protobuf.fields(protobuf.message(value, _("a parameter"))))
            names.append(protobuf.text(parameter.get(1)))
    except WireError as error:
        return [_("is truncated or not a MindSpore checkpoint: {error}", error=error)], {}
    unique = dict.fromkeys(names)
    return survey.missing_keys(unique, keys), {"tensors": len(unique), **_UNLOOKED}


def _not_asked(keys: Sequence[str]) -> list[str]:
    return [_("cannot be asked for the key {key!r}: nobody looks into it", key=key) for key in keys]
