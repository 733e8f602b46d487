"""Which published files are loaded, how, with which keys, and of what kind each is: the same on box
and laptop.

A name that claims a kind is taken by its word, and the file has to hold it: 300 random bytes that
are called best.pth.tar are a bad checkpoint. Where the name claims nothing and no bytes are known,
the file is BYTES: nobody looks into it, and the tables say so.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from boxcar.shared.disk import regular_file
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import BYTES_ONLY, Artifact
from boxcar.shared.files.receipt import BYTES

# torch.distributed.checkpoint's own names.
SHARDED_INDEX, SHARD_SUFFIX = ".metadata", ".distcp"
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


def files_of(artifact: str, manifest: Manifest) -> list[FileRecord]:
    """The published files that belong to an artifact: a file, a folder, or a pattern of either."""
    names = frozenset(matches_of(artifact, manifest))
    return [file for file in manifest.files if _is_of(file.path, names)]


def matches_of(artifact: str, manifest: Manifest) -> tuple[str, ...]:
    """The file or folder that an artifact is, or what was taken of a pattern."""
    return manifest.matches.get(artifact, (artifact,))


def loaded_of(artifact: str, manifest: Manifest) -> list[str]:
    """Those of them that hold something to look at: in a folder a file may be empty."""
    names = frozenset(matches_of(artifact, manifest))
    return [
        file.path for file in files_of(artifact, manifest) if file.size_bytes or file.path in names
    ]


def to_load(artifacts: Iterable[Artifact], manifest: Manifest) -> list[Artifact]:
    """Each published file to be loaded, once, with all keys that it must hold.

    Of two artifacts that say how, the one that names the file itself counts, else the first. Of a
    cell that leaves none its log is the result, of which nobody knows what it should hold.
    """
    artifacts = list(artifacts) or [Artifact(f"{manifest.cell}.log", load=BYTES_ONLY)]
    by_file = _by_file(artifacts, manifest)
    sharded = _sharded_roots(manifest)
    roots = {item.path: sharded & {*matches_of(item.path, manifest)} for item in artifacts}
    return [
        Artifact(name, _keys(name, of, roots), load=_counts(name, of).load)
        for name, of in by_file.items()
    ]


def said_as(artifacts: Iterable[Artifact], manifest: Manifest) -> dict[str, str]:
    """The artifact of job.yaml that says how a file is loaded, by file, where it has another name.

    That is where a person writes another `load`.
    """
    found = {name: _counts(name, of).path for name, of in _by_file(artifacts, manifest).items()}
    return {name: path for name, path in found.items() if path != name}


def _by_file(artifacts: Iterable[Artifact], manifest: Manifest) -> dict[str, list[Artifact]]:
    found: dict[str, list[Artifact]] = {}
    for artifact in artifacts:
        for name in loaded_of(artifact.path, manifest):
            found.setdefault(name, []).append(artifact)
    return found


def _counts(name: str, artifacts: list[Artifact]) -> Artifact:
    own = [artifact for artifact in artifacts if artifact.path == name]
    return own[-1] if own else artifacts[0]


def _keys(
    name: str, artifacts: list[Artifact], roots: Mapping[str, Collection[str]]
) -> tuple[str, ...]:
    wanted = (_keys_of(item, name, roots[item.path]) for item in artifacts if item.keys)
    return tuple(dict.fromkeys(key for keys in wanted for key in keys))


def _keys_of(artifact: Artifact, name: str, roots: Collection[str]) -> tuple[str, ...]:
    """A sharded checkpoint is one thing: its index has the keys, no other file of the folder.

    `roots` are those matches of the artifact that are one.
    """
    root = next((step for step in _steps(name) if step in roots), None)
    return artifact.keys if root is None or name == f"{root}/{SHARDED_INDEX}" else ()


def _sharded_roots(manifest: Manifest) -> frozenset[str]:
    tail = f"/{SHARDED_INDEX}"
    return frozenset(
        file.path.removesuffix(tail) for file in manifest.files if file.path.endswith(tail)
    )


def _is_of(path: str, names: Collection[str]) -> bool:
    return any(step in names for step in _steps(path))


def _steps(path: str) -> Iterator[str]:
    """The path itself, and each folder that it lies in."""
    yield path
    yield from (str(folder) for folder in PurePosixPath(path).parents)


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
