"""What kind a file is: what its name claims, else what its first bytes say.

A name that claims a kind is taken by its word, and the file has to hold it: 300 random bytes that
are called best.pth.tar are a bad checkpoint. Where the name claims nothing and no bytes are known,
the file is BYTES: nobody looks into it, and the tables say so.
"""

from __future__ import annotations

import struct
from pathlib import Path, PurePosixPath

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.receipt import BYTES
from boxcar.shared.to_load import SHARD_SUFFIX, SHARDED_INDEX

SHARDED, SHARD = "sharded", "shard"
# What is loaded by torch, or by a library that comes with it.
BY_TORCH = frozenset({"numpy", "pickle", "safetensors", SHARDED, "torch"})
_CLAIMED = {
    ".ckpt": "torch",
    ".csv": "csv",
    ".joblib": "pickle",
    ".json": "json",
    ".jsonl": "jsonl",
    ".npy": "numpy",
    ".npz": "numpy",
    ".onnx": "onnx",
    ".pickle": "pickle",
    ".pkl": "pickle",
    ".pt": "torch",
    ".pth": "torch",
    ".safetensors": "safetensors",
    SHARD_SUFFIX: SHARD,
}
# A pickle may be compressed as a whole; nobody looks into other files that are.
_COMPRESSED = (".bz2", ".gz", ".lz4", ".lzma", ".xz", ".z")
_HEAD_BYTES = 4096
_ZIP = b"PK\x03\x04"
_NUMPY = b"\x93NUMPY"
# What torch.save wrote before its zip format: a pickle of this number comes first.
_LEGACY_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# A pickle's first two bytes; 0x80 alone begins other things too, such as an empty map of msgpack.
_PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
_OF_INDEX = b"torch.distributed.checkpoint.metadata"


def kind_of(folder: Path, relative: str) -> str:
    """Of a file below `folder`; BYTES too where it cannot be read: the look at it says why."""
    head, size_bytes = _head(folder, relative)
    name = PurePosixPath(relative)
    if name.name == SHARDED_INDEX and (_OF_INDEX in head or _has_shards(folder / name.parent)):
        return SHARDED
    claimed, told = _claimed(name), _told(name.suffix.lower(), head, size_bytes)
    # A checkpoint is a pickle too, and people call it one: accelerate's random_states_0.pkl.
    return told if (claimed, told) == ("pickle", "torch") else claimed or told


def _claimed(name: PurePosixPath) -> str | None:
    """`best.pth.tar` is a checkpoint that was saved under that name, and no archive."""
    suffixes = [suffix.lower() for suffix in name.suffixes[-2:]]
    if suffixes[-1:] == [".tar"]:
        suffixes.pop()
    claimed = [_CLAIMED.get(suffix) for suffix in suffixes]
    if claimed[:1] == ["pickle"] and suffixes[-1] in _COMPRESSED:
        return "pickle"
    return claimed[-1] if claimed else None


def _told(suffix: str, head: bytes, size_bytes: int) -> str:
    if head.startswith(_ZIP):
        return _told_by_zip(head)
    if head.startswith(_LEGACY_TORCH) or (suffix == ".bin" and head.startswith(_PICKLES)):
        return "torch"
    if head.startswith(_NUMPY):
        return "numpy"
    return "safetensors" if _is_safetensors(head, size_bytes) else BYTES


def _told_by_zip(head: bytes) -> str:
    """By the name of the archive's first entry."""
    length = struct.unpack_from("<H", head, 26)[0] if len(head) >= 30 else 0
    first = head[30 : 30 + length]
    if first.endswith(b"/data.pkl"):
        return "torch"
    return "numpy" if first.endswith(b".npy") else BYTES


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
