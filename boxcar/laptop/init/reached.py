"""What a script runs of its own project: itself, and of each file that it imports what it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from boxcar.laptop.init.source import parsed, walk
from boxcar.shared.record import dataclass

_MOST_FILES, _MOST_BYTES = 60, 600_000  # so that it takes a second
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Part:
    """Of the file at `path`, relative to the project, what a script runs."""

    path: str
    tree: ast.Module


@dataclass(frozen=True)
class Reached:
    """The script itself is the first of `parts`. `others` are what it imports and is not seen to
    call; `is_cut`: it imports more files than are read.
    """

    parts: tuple[Part, ...]
    others: tuple[Part, ...]
    is_cut: bool


def reached_modules(root: Path, path: Path, tree: ast.Module) -> Reached:
    """Read from what the script imports by name, and what that imports."""
    files, is_cut = _imported(root, path, tree)
    own = {node.name for node in tree.body if isinstance(node, _DEFINES)}
    called = _called_of(tree, [tree for _, tree in files]) - own
    parts, others = [Part(_below(root, path), tree)], []
    for file, imported in files:
        inside = [node for node in imported.body if _is_run(node, called)]
        outside = [node for node in imported.body if not _is_run(node, called)]
        parts.append(Part(_below(root, file), ast.Module(inside, [])))
        others.append(Part(_below(root, file), ast.Module(outside, [])))
    return Reached(tuple(parts), tuple(others), is_cut)


def _below(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _called_of(tree: ast.Module, imported: Sequence[ast.Module]) -> set[str]:
    """All names that are reached from what the script names, one definition after another."""
    defined: dict[str, list[ast.stmt]] = {}
    for node in (node for each in imported for node in each.body):
        if isinstance(node, _DEFINES):
            defined.setdefault(node.name, []).append(node)
    found, left = set[str](), [tree, *(n for each in imported for n in each.body if _is_top(n))]
    while left:
        new = set(_names(left.pop())) - found
        found |= new
        left += [node for name in new for node in defined.get(name, ())]
    return found


def _names(node: ast.AST) -> Iterator[str]:
    for each in walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def _is_run(node: ast.stmt, called: set[str]) -> bool:
    return node.name in called if isinstance(node, _DEFINES) else _is_top(node)


def _is_top(node: ast.stmt) -> bool:
    """What an import runs: not a definition, and not what a module does as a script."""
    is_guard = isinstance(node, ast.If) and "__name__" in ast.dump(node.test)
    return not is_guard and not isinstance(node, _DEFINES)


def is_from_root(root: Path, path: Path, imports: Iterable[str]) -> bool:
    """Whether one of the modules lies right in the project and not beside the script."""
    beside, names = path.parent, {name.partition(".")[0] for name in imports}
    return any(_is_module(root / name) and not _is_module(beside / name) for name in names)


def _is_module(place: Path) -> bool:
    return place.with_name(f"{place.name}.py").is_file() or any(place.glob("*.py"))


def _imported(
    root: Path, path: Path, tree: ast.Module
) -> tuple[list[tuple[Path, ast.Module]], bool]:
    """Every file that is imported, also by one that is, the nearest first; whether more are."""
    left, seen, found = [(path, tree)], {path.resolve()}, list[tuple[Path, ast.Module]]()
    size_bytes = 0
    while left:
        for file in imports(root, *left.pop(0)):
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            if len(found) == _MOST_FILES or size_bytes > _MOST_BYTES:
                return found, True
            size_bytes += file.stat().st_size
            if imported := parsed(file):
                found.append((file, imported))
                left.append((file, imported))
    return found, False


def imports(root: Path, path: Path, tree: ast.Module) -> Iterator[Path]:
    """The files of the project that a source imports."""
    for node in _statements(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            own = [node.module] if node.module else []
            names = [*own, *(".".join([*own, alias.name]) for alias in node.names)]
        folders = _folders(root, path, getattr(node, "level", 0)) if names else ()
        yield from (file for name in names if (file := file_of(folders, name)))


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """All but what expressions are made of, which is most of a tree and imports nothing."""
    left = tree.body[:]
    for node in left:
        inner = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        inner += [each.body for name in ("handlers", "cases") for each in getattr(node, name, ())]
        left += [each for block in inner for each in block]
        yield node


def _folders(root: Path, path: Path, level: int) -> tuple[Path, ...]:
    """Where the first part of a name is looked for; of `from ..a import b` one folder up."""
    places = path.parents[level - 1 : level] if level else (path.parent, root, root / "src")
    return tuple(place for place in places if place.is_relative_to(root))


def file_of(folders: tuple[Path, ...], name: str) -> Path | None:
    for place in (folder.joinpath(*name.split(".")) for folder in folders):
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None
