"""Of what kind a file is: one table for box and laptop.

First bytes that belong to one format count, whatever the file is called. Else a name that claims a
kind is taken by its word, and the file has to hold it: 300 random bytes that are called
best.pth.tar are a bad checkpoint. Where neither says anything the file is BYTES: nobody looks into
it, the tables say so, and for some names why (WHY_BYTES). docs/file_kinds.md has the libraries.
"""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.receipt import BYTES
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# torch.distributed.checkpoint's own names.
SHARDED_INDEX, SHARD_SUFFIX = ".metadata", ".distcp"
SHARDED, SHARD = "sharded", "shard"
ZIP, HDF5 = b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class Kind:
    """`suffixes` claim it, `begins` are its first bytes; `is_by_torch`: it is loaded by torch, or
    by a library that comes with it.
    """

    suffixes: str = ""
    begins: tuple[bytes, ...] = ()
    is_by_torch: bool = False


KINDS = {
    "csv": Kind(".csv"),
    "hdf5": Kind(".h5 .hdf5", (HDF5,)),
    "json": Kind(".json"),
    "jsonl": Kind(".jsonl"),
    "lightgbm": Kind("", (b"tree\nversion=v3\n", b"tree\nversion=v4\n")),
    "mindspore": Kind(),
    "numpy": Kind(".npy .npz", (b"\x93NUMPY",), is_by_torch=True),
    "onnx": Kind(".onnx"),
    "pickle": Kind(".joblib .pdopt .pdparams .pickle .pkl", is_by_torch=True),
    "safetensors": Kind(".safetensors", is_by_torch=True),
    SHARD: Kind(SHARD_SUFFIX),
    SHARDED: Kind(is_by_torch=True),
    "torch": Kind(".pt .pth", is_by_torch=True),
    "ubjson": Kind(".ubj"),
    "zip": Kind(".keras .pt2 .skops .zip"),
}
BY_TORCH = frozenset(name for name, kind in KINDS.items() if kind.is_by_torch)
# Suffixes of several libraries, or of one whose files do not say how long they are.
WHY_BYTES = {
    ".bin": _("is neither a pickle nor of torch.save, and does not say how long it is"),
    ".cbm": _("is CatBoost's own format, which does not say how long it is"),
    ".ckpt": _("is neither of torch.save nor of MindSpore, or encrypted"),
}
_PICKLED = _("is a pickle, by a name that claims something else")
_CLAIMED = {suffix: name for name, kind in KINDS.items() for suffix in kind.suffixes.split()}
# A pickle may be compressed as a whole; nobody looks into other files that are.
_COMPRESSED = (".bz2", ".gz", ".lz4", ".lzma", ".xz", ".z")
_HEAD_BYTES = 4096
# What torch.save wrote before its zip format: a pickle of this number comes first.
_LEGACY_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# A pickle's first two bytes; 0x80 alone begins other things too, such as an empty map of msgpack.
_PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
# Field 1 and its length; in it field 1, the length of a parameter's name, the name; then field 2.
_MINDSPORE = re.compile(rb"\n[\x80-\xff]{0,9}[\0-\x7f]\n[\x80-\xff]?[\0-\x7f][ -~\x80-\xff]+\x12")
_OF_INDEX = b"torch.distributed.checkpoint.metadata"


def kind_of(folder: Path, relative: str) -> str:
    """Of a file below `folder`; BYTES too where it cannot be read: the look at it says why."""
    claimed, told = _said(folder, relative)
    return told or claimed or BYTES


def why_bytes(folder: Path, relative: str) -> str:
    """Why nobody looks into a file of kind BYTES, where there is more to say than that its kind is
    not known.
    """
    name = PurePosixPath(relative)
    return _PICKLED if _claimed(name) else WHY_BYTES.get(name.suffix.lower(), "")


def _said(folder: Path, relative: str) -> tuple[str | None, str | None]:
    """What the name claims, and what the bytes say."""
    head, size_bytes = _head(folder, relative)
    name = PurePosixPath(relative)
    claimed = _claimed(name)
    if claimed == SHARD:
        return claimed, SHARD
    if name.name == SHARDED_INDEX and (_OF_INDEX in head or _has_shards(folder / name.parent)):
        return claimed, SHARDED
    if head.startswith(_PICKLES):
        return claimed, _told_by_pickle(claimed, name.suffix.lower(), head)
    if head.startswith(ZIP):
        return claimed, _told_by_zip(claimed, head)
    if name.suffix.lower() == ".ckpt" and _MINDSPORE.match(head):
        return claimed, "mindspore"
    if head and name.suffix.lower() == ".ckpt" and not head.strip(b"\0"):
        return "torch", None  # a hole, as a crash of the machine leaves it
    told = (kind for kind, row in KINDS.items() if row.begins and head.startswith(row.begins))
    return claimed, next(told, "safetensors" if _is_safetensors(head, size_bytes) else None)


def _claimed(name: PurePosixPath) -> str | None:
    """`best.pth.tar` is a checkpoint that was saved under that name, and no archive."""
    suffixes = [suffix.lower() for suffix in name.suffixes[-2:]]
    if suffixes[-1:] == [".tar"]:
        suffixes.pop()
    claimed = [_CLAIMED.get(suffix) for suffix in suffixes]
    if claimed[:1] == ["pickle"] and suffixes[-1] in _COMPRESSED:
        return "pickle"
    return claimed[-1] if claimed else None


def _told_by_pickle(claimed: str | None, suffix: str, head: bytes) -> str | None:
    """People call a checkpoint a pickle, as accelerate its random_states_0.pkl, and a pickle a
    checkpoint. By another name a pickle is somebody's own, as Ray's .json: it is not refused.
    """
    if _LEGACY_TORCH in head[:32]:
        return "torch"
    if claimed in ("pickle", "torch") or suffix in (".bin", ".ckpt"):
        return "pickle"
    return BYTES


def _told_by_zip(claimed: str | None, head: bytes) -> str:
    """By the name of the archive's first entry; a TorchScript's is any."""
    length = struct.unpack_from("<H", head, 26)[0] if len(head) >= 30 else 0
    first = head[30 : 30 + length]
    if claimed == "torch" or first.endswith(b"/data.pkl"):
        return "torch"
    is_arrays = first.endswith(b".npy") and claimed != "zip"
    return "numpy" if is_arrays or claimed == "numpy" else "zip"


def _is_safetensors(head: bytes, size_bytes: int) -> bool:
    if len(head) < 10 or head[8:10] not in (b'{"', b"{}"):
        return False
    length: int = struct.unpack_from("<Q", head)[0]
    return length <= size_bytes - 8


def _head(folder: Path, relative: str) -> tuple[bytes, int]:
    try:
        with regular_file.open_left(folder, relative) as file:
            return file.read(_HEAD_BYTES), file.seek(0, 2)
    except (OSError, ValueError, DamagedError):
        return b"", 0


def _has_shards(folder: Path) -> bool:
    try:
        return any(path.suffix == SHARD_SUFFIX for path in folder.iterdir())
    except OSError:
        return False


# Whether a zip is there to its end.


def has_zip_end(file: IO[bytes]) -> bool:
    """Not where what ends there is an archive that lies in it as it is, as in those of
    Stable-Baselines3: its entries do not begin where the file does.
    """
    file.seek(0)
    begins_with_entry = file.read(len(ZIP)) == ZIP
    try:
        with zipfile.ZipFile(file) as archive:
            first = min((entry.header_offset for entry in archive.infolist()), default=0)
            return not (begins_with_entry and first)
    except (zipfile.BadZipFile, NotImplementedError):
        return False
