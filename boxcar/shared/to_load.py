"""Which published files are loaded, and with which keys: the same on the box and on the laptop."""

from __future__ import annotations

from collections.abc import Iterable

from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import Artifact

# torch.distributed.checkpoint's own names.
SHARDED_INDEX, SHARD_SUFFIX = ".metadata", ".distcp"


def files_of(artifact: str, manifest: Manifest) -> list[FileRecord]:
    """The published files that belong to an artifact, which may be a file or a folder."""
    head = f"{artifact}/"
    return [file for file in manifest.files if file.path == artifact or file.path.startswith(head)]


def loaded_of(artifact: str, manifest: Manifest) -> list[str]:
    """Those of them that hold something to look at: in a folder a file may be empty."""
    return [
        file.path
        for file in files_of(artifact, manifest)
        if file.size_bytes or file.path == artifact
    ]


def to_load(artifacts: Iterable[Artifact], manifest: Manifest) -> list[Artifact]:
    """Each published file to be loaded, once, with all keys that it must hold."""
    keys: dict[str, list[str]] = {}
    for artifact in artifacts:
        for name in loaded_of(artifact.path, manifest):
            keys.setdefault(name, []).extend(_keys_of(artifact, name, manifest))
    return [Artifact(name, tuple(dict.fromkeys(wanted))) for name, wanted in keys.items()]


def _keys_of(artifact: Artifact, name: str, manifest: Manifest) -> tuple[str, ...]:
    """A sharded checkpoint is one thing: its index has the keys, no other file of the folder."""
    index = f"{artifact.path}/{SHARDED_INDEX}"
    is_sharded = any(file.path == index for file in manifest.files)
    return artifact.keys if not is_sharded or name == index else ()
