"""Which published files are loaded, and with which keys: the same on the box and on the laptop."""

from __future__ import annotations

from collections.abc import Iterable

from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import Artifact

# torch.distributed.checkpoint's own names.
SHARDED_INDEX, SHARD_SUFFIX = ".metadata", ".distcp"


def files_of(artifact: str, manifest: Manifest) -> list[FileRecord]:
    """The published files that belong to an artifact: a file, a folder, or a pattern of either."""
    names = matches_of(artifact, manifest)
    heads = tuple(f"{name}/" for name in names)
    return [file for file in manifest.files if file.path in names or file.path.startswith(heads)]


def matches_of(artifact: str, manifest: Manifest) -> tuple[str, ...]:
    """The file or folder that an artifact is, or what was taken of a pattern."""
    return manifest.matches.get(artifact, (artifact,))


def loaded_of(artifact: str, manifest: Manifest) -> list[str]:
    """Those of them that hold something to look at: in a folder a file may be empty."""
    return [
        file.path
        for file in files_of(artifact, manifest)
        if file.size_bytes or file.path in matches_of(artifact, manifest)
    ]


def to_load(artifacts: Iterable[Artifact], manifest: Manifest) -> list[Artifact]:
    """Each published file to be loaded, once, with all keys that it must hold.

    Of two artifacts that say how, the one that names the file itself counts, else the first.
    """
    keys: dict[str, list[str]] = {}
    modes: dict[str, str] = {}
    for artifact in artifacts:
        for name in loaded_of(artifact.path, manifest):
            keys.setdefault(name, []).extend(_keys_of(artifact, name, manifest))
            if name == artifact.path or name not in modes:
                modes[name] = artifact.load
    return [
        Artifact(name, tuple(dict.fromkeys(wanted)), load=modes[name])
        for name, wanted in keys.items()
    ]


def _keys_of(artifact: Artifact, name: str, manifest: Manifest) -> tuple[str, ...]:
    """A sharded checkpoint is one thing: its index has the keys, no other file of the folder."""
    indices = [f"{match}/{SHARDED_INDEX}" for match in matches_of(artifact.path, manifest)]
    below = next((index for index in indices if name.startswith(index[: -len(SHARDED_INDEX)])), "")
    is_sharded = any(file.path == below for file in manifest.files)
    return artifact.keys if not is_sharded or name == below else ()
