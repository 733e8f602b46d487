"""Which published files are loaded, how and with which keys: the same on box and laptop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from boxcar.shared.artifacts.file_kinds import SHARDED_INDEX
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import BYTES_ONLY, Artifact


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
