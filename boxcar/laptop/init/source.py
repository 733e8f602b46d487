"""Python source as a syntax tree, and what a name in it is called. Nothing is ever run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from boxcar.shared.disk import regular_file

UNKNOWN = object()
_MOST_BYTES = 1_000_000
PERCENT = re.compile(r"%(?:\(\w+\))?(?P<spec>[-+ #0]*\d*(?:\.\d+)?[diouxXeEfFgGsr])")
_BRACES = re.compile(r"\{\w*(?:![rsa])?(?::(?P<spec>[^{}]*))?\}")


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


def children(node: ast.AST) -> list[ast.AST]:
    """As ast.iter_child_nodes, in a third of its time; without Load and Store."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found


def walk(tree: ast.AST) -> list[ast.AST]:
    """All nodes in the order of ast.walk."""
    found = [tree]
    for node in found:
        found += children(node)
    return found


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


def text_of(node: ast.expr, value: Callable[[ast.expr, str], str]) -> str:
    """What an expression makes of its literal texts; `value` says what stands for any other, with
    the format that it is given.
    """

    def text(inner: ast.expr) -> str:
        return text_of(inner, value)

    def filled(template: str, holes: re.Pattern[str], given: Sequence[ast.expr]) -> str:
        left = iter(given)

        def fill(hole: re.Match[str]) -> str:
            return value(next(left, ast.Constant(None)), re.sub("[rs]", "", hole["spec"] or ""))

        return holes.sub(fill, template)

    if is_text(node):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text, node.values))
    if isinstance(node, ast.FormattedValue):
        return value(node.value, text(node.format_spec) if node.format_spec else "")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text(node.left) + text(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_text(node.left):
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return filled(text(node.left), PERCENT, values)
    made = node.func if isinstance(node, ast.Call) else None
    if isinstance(made, ast.Attribute) and made.attr == "format" and is_text(made.value):
        return filled(text(made.value), _BRACES, node.args if isinstance(node, ast.Call) else ())
    return value(node, "")


def is_text(node: ast.AST | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


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
