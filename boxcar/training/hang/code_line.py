"""A line of the user's code, as a rank's dump tells it."""

from __future__ import annotations

import ast
import dataclasses
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from boxcar.training.hang.stacks import Frame


@dataclass(frozen=True)
class CodeLine:
    """A line of the user's code, with what the source says around it (Around)."""

    file: str
    line: int
    function: str = ""
    text: str = ""
    loop: tuple[int, int] | None = None
    branch: tuple[int, str] | None = None
    ways_out: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def code_line_of_frame(frame: Frame) -> CodeLine:
    """A frame with what its source says."""
    return CodeLine(frame.file, frame.line, frame.function, *look_around(frame.file, frame.line))


def parse_code_line(fields: dict[str, Any]) -> CodeLine:
    """One that was written by this version or by a newer one, which may know more fields."""
    known = {field.name for field in dataclasses.fields(CodeLine)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
        if name in known
    }
    return CodeLine(**values)


# --- What the source says around a line: its text, its loop, and the `if` that not all ranks
# enter. Pure but for reading the file. A file that is gone, or no longer parses, gives the little
# there is.


# A test of this kind is true on some ranks only.
_DIFFERS = re.compile(r"rank|is_main|is_master|main_process|nan|finite|inf\b", re.IGNORECASE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Around(NamedTuple):
    """`loop`: first and last line of the innermost loop. `branch`: the line of the innermost `if`
    around it whose test is true on some ranks only, and its text. `ways_out`: the lines that leave
    one of the loops around it."""

    text: str = ""
    loop: tuple[int, int] | None = None
    branch: tuple[int, str] | None = None
    ways_out: tuple[int, ...] = ()


def look_around(file: str, line: int) -> Around:
    """What the source says around `line` of `file`, numbered from 1."""
    text = linecache.getline(file, line).strip()
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return Around(text)
    chain = list(_chain(tree, line))
    loops = [node for node in chain if isinstance(node, (ast.For, ast.While))]
    branch = next((found for node in reversed(chain) if (found := _branch(node, line))), None)
    return Around(
        text,
        (loops[-1].lineno, loops[-1].end_lineno or line) if loops else None,
        branch,
        tuple(sorted({way for loop in loops for way in _ways_out(loop)})),
    )


def _chain(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The nodes of the innermost function around `line`, the outermost first."""
    chain: list[ast.AST] = []
    while True:
        children = ast.iter_child_nodes(node)
        node = next((child for child in children if _covers(child, line)), None)  # type: ignore[assignment]
        if node is None:
            return iter(chain)
        chain = [node] if isinstance(node, _FUNCTIONS) else [*chain, node]


def _covers(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and first <= line <= (last or first)


def _branch(node: ast.AST, line: int) -> tuple[int, str] | None:
    if not isinstance(node, ast.If) or not _DIFFERS.search(test := ast.unparse(node.test)):
        return None
    if any(_covers(child, line) for child in node.body):
        return node.lineno, f"if {test}:"
    in_else = any(_covers(child, line) for child in node.orelse)
    return (node.lineno, f"else of if {test}:") if in_else else None


def _ways_out(node: ast.AST, *, in_inner_loop: bool = False) -> list[int]:
    """What leaves this loop; an inner loop's `break` and an inner function do not."""
    found: list[int] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            continue
        leaves = isinstance(child, (ast.Return, ast.Raise)) or _is_exit(child)
        if leaves or (isinstance(child, ast.Break) and not in_inner_loop):
            found.append(child.lineno)  # type: ignore[attr-defined]
        is_loop = isinstance(child, (ast.For, ast.While))
        found += _ways_out(child, in_inner_loop=in_inner_loop or is_loop)
    return found


def _is_exit(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith(("sys.exit(", "exit("))
