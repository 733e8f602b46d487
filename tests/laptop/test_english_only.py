"""How many sentences of laptop and box are still said in English alone. The number may only fall: a
new sentence is a template, `_("{cell}: dropped", cell=cell)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import boxcar

ROOT = Path(boxcar.__path__[0])
MOST = 3
# What shows its first word to a person; so does every error of ours.
SAYS = ("show.say", "show.line", "show.waiting", "show.progress", "show.ask", "Message")
# Python's own, which a person sees as a fault of the program.
INTERNAL = ("AssertionError", "KeyError", "TypeError", "OSError", "RuntimeError", "IndexError")


def english_only(source: str) -> set[int]:
    """The lines that say a literal: a text, or an f-string with words of its own."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    said = [call.args[0] for call in calls if call.args and _speaks(ast.unparse(call.func))]
    return {node.lineno for word in said for node in _words(word) if _is_literal(node)}


def _speaks(function: str) -> bool:
    is_error = function.endswith("Error") and not function.endswith(INTERNAL)
    return is_error or function in SAYS


def _words(node: ast.AST) -> Iterator[ast.AST]:
    """What it is made of, but for the template of a sentence, and keys of inner calls."""
    yield node
    is_call = isinstance(node, ast.Call)
    inner = [each.value for each in node.keywords] if is_call else ast.iter_child_nodes(node)
    for each in inner:
        yield from _words(each)


def _is_literal(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip()
    )


def test_the_sentences_that_are_english_only_become_fewer() -> None:
    found = [
        f"{path.relative_to(ROOT.parent)}:{line}"
        for folder in ("boxcar/laptop", "boxcar/door", "boxcar/shared", "onbox")
        for path in sorted((ROOT.parent / folder).rglob("*.py"))
        for line in sorted(english_only(path.read_text(encoding="utf-8")))
    ]
    assert len(found) <= MOST, found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("show.say('all is well')", 1),
        ("show.say(f'{cell}: dropped')", 1),
        ("show.say(Message('Next one', Command('down')))", 1),
        ("Message(f'{x} is gone')", 1),
        ("raise InputError(f'{x} is gone')", 1),
        ("show.say(_('{n} refused', n=2))", 0),
        ("raise InputError([_('{n} refused', n=2)])", 0),
        ("show.say(_('{n} refused', n=f'{n} cells'))", 1),
        ("raise KeyError('no such thing')", 0),
        ("show.say(message)", 0),
    ],
)
def test_a_planted_sentence_is_counted(source: str, lines: int) -> None:
    assert len(list(english_only(source))) == lines
