"""Python source as a syntax tree, and what a name in it is called. Nothing is ever run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boxcar.shared.disk import regular_file

UNKNOWN = object()
_MOST_BYTES = 1_000_000


def data_of(path: Path) -> bytes:
    """b"" for what is no regular file, cannot be read, or is far larger than a script."""
    try:
        with regular_file.open_followed(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError):
        return b""
    return data if len(data) <= _MOST_BYTES else b""


def lies(root: Path, word: str) -> bool:
    """Whether any text names a file or folder of the project."""
    try:
        return (root / word).exists()
    except (OSError, ValueError):  # too long, or a null byte
        return False


def parsed(path: Path) -> ast.Module | None:
    """None for what cannot be read or is no Python."""
    try:
        return ast.parse(data) if (data := data_of(path)) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def dotted(node: ast.expr) -> str:
    """`a.b.c`; of an attribute of anything else `.c`, and '' of what has no name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def last(node: ast.expr) -> str:
    """`c` of `a.b.c`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with its value, also of `last, best = w / "last.pt", w / "best.pt"`."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def literal(node: ast.expr | None) -> Any:
    """The value of a literal; UNKNOWN of any other expression, None where there is none."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN
