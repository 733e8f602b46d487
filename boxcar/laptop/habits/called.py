"""What a name or an attribute in a source is called, and what a name is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def dotted(node: ast.expr) -> str:
    """`a.b.c`; of an attribute of anything else `.c`, and '' of what has no name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def last(node: ast.expr) -> str:
    """`c` of `a.b.c`."""
    return dotted(node).rpartition(".")[2]


def assigned(node: ast.Assign) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Each name with its value, also of `last, best = w / "last.pt", w / "best.pt"`."""
    target, value = node.targets[0], node.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=False))
    yield from ((name, given) for name, given in pairs if isinstance(name, ast.Name))
