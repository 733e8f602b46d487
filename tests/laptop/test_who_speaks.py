"""Only verbs speak to a person: nouns return values, or tell a callback that the verb gave them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import boxcar

LAPTOP = Path(boxcar.__file__).parent / "laptop"
# What draws on the terminal, and the rooms that may use it.
TERMINAL = ("boxcar.laptop.common.show", "rich")
# The schema for editors is a program of its own, whose output is a file.
# The board draws on a console that a verb gives it.
MAY_SPEAK = (
    *("verbs/", "common/show.py", "common/bars.py", "project/profiles/json_schema.py"),
    *("view/board/terminal_lines.py", "view/board/screen.py"),
)
MEASURE = "rich.cells"  # says how wide a text is, and draws nothing


def speaks(source: str) -> list[int]:
    """The lines that import the terminal, print, or write to a standard stream."""
    nodes = list(ast.walk(ast.parse(source)))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    streams = [
        node
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr")
    ]
    return [
        *(node.lineno for node in nodes if any(map(is_terminal, imported(node)))),
        *(node.lineno for node in called if getattr(node, "id", "") in ("print", "input")),
        *(node.lineno for node in streams if ast.unparse(node) in ("sys.stdout", "sys.stderr")),
    ]


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def is_terminal(name: str) -> bool:
    if name == MEASURE or name.startswith(f"{MEASURE}."):
        return False
    return any(name == one or name.startswith(f"{one}.") for one in TERMINAL)


def test_no_noun_speaks() -> None:
    speaking = [
        f"{path.relative_to(LAPTOP)}:{line}"
        for path in sorted(LAPTOP.rglob("*.py"))
        if not path.relative_to(LAPTOP).as_posix().startswith(MAY_SPEAK)
        for line in speaks(path.read_text())
    ]
    assert speaking == []


@pytest.mark.parametrize(
    "source",
    [
        "from boxcar.laptop.common import show",
        "from boxcar.laptop.common.show import say",
        "import rich.console",
        "print('hello')",
        "import sys; sys.stderr.write('hello')",
        "def late():\n from rich.table import Table",
    ],
)
def test_a_planted_word_is_found(source: str) -> None:
    assert len(speaks(source)) == 1
