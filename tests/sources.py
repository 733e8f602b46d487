"""Our own sources, for the tests that hold all of them to a rule. To walk every node of a hundred
thousand lines takes seconds, so a rule looks for its words in the text first, and for imports only
at statements.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOUSES = ("boxcar", "onbox")


@functools.cache
def sources(*parts: str) -> dict[str, str]:
    """The text of each Python file below these folders, or that is one of them, by its path."""
    paths = [path for part in parts for path in (ROOT / part, *(ROOT / part).rglob("*.py"))]
    files = sorted(path for path in paths if path.suffix == ".py")
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import statement, wherever it stands: also a late one, and one under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from imports(node)
