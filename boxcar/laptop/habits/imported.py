"""The files of its own project that a script imports, found by their names and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from boxcar.shared.disk import regular_file

_MOST_FILES = 200
_MOST_BYTES = 1_000_000


def parsed(path: Path) -> ast.Module | None:
    """None for what is no regular file, is far larger than a script, or is no Python."""
    try:
        with regular_file.open_followed(path) as file:
            data = file.read(_MOST_BYTES + 1)
        return ast.parse(data) if len(data) <= _MOST_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_from_root(root: Path, path: Path, imports: Iterable[str]) -> bool:
    """Whether one of the modules lies right in the project and not beside the script."""
    beside, names = path.parent, {name.partition(".")[0] for name in imports}
    return any(_is_module(root / name) and not _is_module(beside / name) for name in names)


def _is_module(place: Path) -> bool:
    return place.with_name(f"{place.name}.py").is_file() or any(place.glob("*.py"))


def by_name(root: Path, path: Path, tree: ast.Module) -> Iterator[tuple[Path, frozenset[str]]]:
    """Of `from mine.trainer import Trainer` the file, and the names that are taken from it."""
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)):
        names = frozenset(alias.name for alias in node.names)
        if file := _file(_folders(root, path, node.level), node.module or ""):
            yield file, names


def all_of(root: Path, path: Path, tree: ast.Module) -> Iterator[ast.Module]:
    """Every file that is imported, also by one that is; the script itself is not among them."""
    left, seen = [(path, tree)], {path.resolve()}
    while left and len(seen) < _MOST_FILES:
        for file in _imports(root, *left.pop(0)):
            found = None if file.resolve() in seen else parsed(file)
            seen.add(file.resolve())
            if found:
                yield found
                left.append((file, found))


def _imports(root: Path, path: Path, tree: ast.Module) -> Iterator[Path]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            own = [node.module] if node.module else []
            names = [*own, *(".".join([*own, alias.name]) for alias in node.names)]
        folders = _folders(root, path, getattr(node, "level", 0))
        yield from (file for name in names if (file := _file(folders, name)))


def _folders(root: Path, path: Path, level: int) -> tuple[Path, ...]:
    """Where the first part of a name is looked for; of `from ..a import b` one folder up."""
    places = path.parents[level - 1 : level] if level else (path.parent, root)
    return tuple(place for place in places if place.is_relative_to(root))


def _file(folders: tuple[Path, ...], name: str) -> Path | None:
    if not name:
        return None
    for place in (folder.joinpath(*name.split(".")) for folder in folders):
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None
