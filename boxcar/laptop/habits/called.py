"""What a name or an attribute in a source is called."""

from __future__ import annotations

import ast


def dotted(node: ast.expr) -> str:
    """`a.b.c`; of an attribute of anything else `.c`, and '' of what has no name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def last(node: ast.expr) -> str:
    """`c` of `a.b.c`."""
    return dotted(node).rpartition(".")[2]
